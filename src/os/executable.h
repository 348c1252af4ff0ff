// SPDX-License-Identifier: Apache-2.0
// Whether a file can be executed by this process.
#pragma once

#include <cstdint>
#include <string>

namespace ronde::os {

enum class Executable : uint8_t { Yes, Missing, Folder, NotPermitted };
Executable look_for_executable(const std::string& path);

}  // namespace ronde::os
