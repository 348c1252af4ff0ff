// SPDX-License-Identifier: Apache-2.0
// Text of the program itself.
#pragma once

#include <string_view>

namespace ronde::cli {

void say(std::string_view text);        // on stdout
void say_error(std::string_view text);  // on stderr

}  // namespace ronde::cli
