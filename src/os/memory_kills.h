// SPDX-License-Identifier: Apache-2.0
// How often the kernel has killed a process of this control group because memory ran out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ronde::os {

// Nothing where the control groups do not tell.
std::optional<uint64_t> count_memory_kills();

// The same over given files: `groups` is the text of /proc/self/cgroup, `read` gives a file's text. Pure.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;
std::optional<uint64_t> count_memory_kills(std::string_view groups, const ReadFile& read);

}  // namespace ronde::os
