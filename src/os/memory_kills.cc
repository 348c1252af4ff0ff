// SPDX-License-Identifier: Apache-2.0
#include "os/memory_kills.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace ronde::os {
namespace {

// The number after `key` and a blank at the start of a line.
std::optional<uint64_t> find_number(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    uint64_t value = 0;
    const char* end = line.data() + line.size();
    if (std::from_chars(line.data() + key.size() + 1, end, value).ec == std::errc()) return value;
  }
  return std::nullopt;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// "0::/a/b" of version 2 and "4:memory:/a/b" of version 1 name the group's folder.
std::optional<std::string> counter_file(std::string_view line) {
  const auto first = line.find(':');
  const auto second = line.find(':', first + 1);
  if (first == line.npos || second == line.npos) return std::nullopt;
  const auto controllers = line.substr(first + 1, second - first - 1);
  std::string folder(line.substr(second + 1));
  if (folder == "/") folder.clear();
  if (controllers.empty()) return "/sys/fs/cgroup" + folder + "/memory.events";
  if (controllers == "memory") return "/sys/fs/cgroup/memory" + folder + "/memory.oom_control";
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> count_memory_kills(std::string_view groups, const ReadFile& read) {
  std::optional<uint64_t> total;
  while (!groups.empty()) {
    const auto line = groups.substr(0, groups.find('\n'));
    groups.remove_prefix(std::min(line.size() + 1, groups.size()));
    const auto path = counter_file(line);
    const auto text = path ? read(*path) : std::nullopt;
    const auto kills = text ? find_number(*text, "oom_kill") : std::nullopt;
    if (kills) total = total.value_or(0) + *kills;
  }
  return total;
}

std::optional<uint64_t> count_memory_kills() {
  return count_memory_kills(read_file("/proc/self/cgroup").value_or(""), read_file);
}

}  // namespace ronde::os
