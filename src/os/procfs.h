// SPDX-License-Identifier: Apache-2.0
// The machine's processes as /proc shows them, and ending those that belong to a job. Every step may race with
// processes that come and go: what is signalled is named by a pidfd and looked at again before.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ronde::os {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';  // 'Z': ended, not yet reaped
};

// The contents of /proc/PID/stat. The name in it may hold blanks and parentheses.
std::optional<ProcessInfo> parse_stat(std::string_view text);
// Those that have not ended.
std::vector<ProcessInfo> list_processes();
// Pids of `processes` that descend from `ancestor`, which is not among them. Pure.
std::vector<pid_t> descendants(const std::vector<ProcessInfo>& processes, pid_t ancestor);

// Sends the signal to each process of which `belongs` says so, twice asked; returns how many there were.
int signal_processes(const std::function<bool(const ProcessInfo&)>& belongs, int signal);
// To all that descend from this process.
int signal_descendants(int signal);
// Whether the process was started with exactly this "K=V" in its environment.
bool has_environment(pid_t pid, std::string_view entry);

}  // namespace ronde::os
