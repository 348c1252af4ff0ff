// SPDX-License-Identifier: Apache-2.0
#include "os/procfs.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <unordered_map>

#include "base/text.h"
#include "os/fd.h"

namespace ronde::os {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::optional<pid_t> parse_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return pid;
}

// The next word of `text`, taken off.
std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

std::optional<ProcessInfo> look_at(pid_t pid) {
  const auto info = parse_stat(read_file(cat("/proc/", pid, "/stat")));
  return info && info->state != 'Z' && info->state != 'X' ? info : std::nullopt;
}

}  // namespace

std::optional<ProcessInfo> parse_stat(std::string_view text) {
  const auto name_begins = text.find(" (");
  const auto name_ends = text.rfind(") ");
  if (name_begins == text.npos || name_ends == text.npos) return std::nullopt;
  const auto pid = parse_pid(text.substr(0, name_begins));
  auto rest = text.substr(name_ends + 2);
  const auto state = next_word(rest);
  const auto parent = parse_pid(next_word(rest));
  next_word(rest);  // the process group
  const auto session = parse_pid(next_word(rest));
  if (!pid || state.size() != 1 || !parent || !session) return std::nullopt;
  return ProcessInfo{*pid, *parent, *session, state[0]};
}

std::vector<ProcessInfo> list_processes() {
  std::vector<ProcessInfo> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (!folder) return out;
  while (const dirent* entry = ::readdir(folder.get())) {
    const auto pid = parse_pid(entry->d_name);
    if (!pid) continue;
    if (const auto info = look_at(*pid)) out.push_back(*info);
  }
  return out;
}

std::vector<pid_t> descendants(const std::vector<ProcessInfo>& processes, pid_t ancestor) {
  std::unordered_multimap<pid_t, pid_t> children;
  for (const auto& process : processes) children.emplace(process.parent, process.pid);
  std::vector<pid_t> out;
  std::vector<pid_t> open{ancestor};
  while (!open.empty()) {
    const auto [first, last] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      out.push_back(child->second);
      open.push_back(child->second);
    }
    children.erase(first, last);
  }
  return out;
}

int signal_processes(const std::function<bool(const ProcessInfo&)>& belongs, int signal) {
  int count = 0;
  for (const auto& process : list_processes()) {
    if (!belongs(process)) continue;
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    const auto now = look_at(process.pid);
    if (!pidfd.valid() || !now || !belongs(*now)) continue;
    ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
    ++count;
  }
  return count;
}

int signal_descendants(int signal) {
  auto pids = descendants(list_processes(), ::getpid());
  std::sort(pids.begin(), pids.end());
  return signal_processes(
      [&](const ProcessInfo& process) { return std::binary_search(pids.begin(), pids.end(), process.pid); }, signal);
}

bool has_environment(pid_t pid, std::string_view entry) {
  const std::string environment = read_file(cat("/proc/", pid, "/environ"));
  for (std::string_view rest = environment; !rest.empty();) {
    const auto one = rest.substr(0, rest.find('\0'));
    if (one == entry) return true;
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
  return false;
}

}  // namespace ronde::os
