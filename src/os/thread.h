// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ronde::os {

// As ps and debuggers show it; at most 15 bytes.
void name_this_thread(const char* name);

}  // namespace ronde::os
