// SPDX-License-Identifier: Apache-2.0
#include "os/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace ronde::os {
namespace {

// Everything that the child needs, in the form of the system calls: nothing is allocated after the fork.
struct Prepared {
  explicit Prepared(const Program& given) : program(given), parent(::getpid()) {
    for (const auto& text : given.arguments) argv.push_back(const_cast<char*>(text.c_str()));
    for (const auto& text : given.environment) envp.push_back(const_cast<char*>(text.c_str()));
    shell = {const_cast<char*>("sh"), const_cast<char*>(given.path.c_str())};
    if (!argv.empty()) shell.insert(shell.end(), argv.begin() + 1, argv.end());
    for (auto* list : {&argv, &envp, &shell}) list->push_back(nullptr);
  }

  const Program& program;
  pid_t parent;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::vector<char*> shell;
};

bool place_descriptors(const Program& program) {
  const int wanted[] = {program.stdin_fd, program.stdout_fd, program.stderr_fd};
  for (int target = 0; target < 3; ++target) {
    // A descriptor below 3 stays in its place; the others are copied down, so that none is overwritten before its turn.
    if (wanted[target] == target) {
      if (::fcntl(target, F_SETFD, 0) != 0) return false;
    } else if (::dup2(wanted[target], target) < 0) {
      return false;
    }
  }
  return std::all_of(program.inherited.begin(), program.inherited.end(),
                     [](int fd) { return ::fcntl(fd, F_SETFD, 0) == 0; });
}

void limit_descriptors(uint64_t soft) {
  rlimit limit{};
  if (soft == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = soft;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool place_session(const Program& program) {
  if (program.own_session) return ::setsid() >= 0;
  return program.group < 0 || ::setpgid(0, program.group) == 0;
}

void become(const Prepared& prepared) {
  const Program& program = prepared.program;
  if (!place_session(program)) return;
  if (program.die_with_parent) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
    if (::getppid() != prepared.parent) ::_exit(127);  // it ended before the line above
  }
  if (!place_descriptors(program)) return;
  limit_descriptors(program.descriptor_limit);
  ::sigprocmask(SIG_SETMASK, &program.mask, nullptr);
  ::execve(program.path.c_str(), prepared.argv.data(), prepared.envp.data());
  if (errno == ENOEXEC) ::execve("/bin/sh", prepared.shell.data(), prepared.envp.data());
}

Fd open_pidfd(pid_t pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

Exit to_exit(const siginfo_t& info) {
  return {.by_signal = info.si_code != CLD_EXITED, .code = info.si_status};
}

constexpr auto kPidfd = static_cast<idtype_t>(3);  // P_PIDFD, which older C libraries do not name

}  // namespace

Result<Child> spawn(const Program& program, const Fd& errors, int tag) {
  const Prepared prepared(program);
  const pid_t pid = ::fork();
  if (pid < 0) return system_error(cat("start ", program.path), errno);
  if (pid == 0) {
    become(prepared);
    const int report[] = {tag, errno};
    [[maybe_unused]] const auto written = ::write(errors.get(), report, sizeof report);
    ::_exit(127);
  }
  Child child{pid, open_pidfd(pid)};
  if (!child.pidfd.valid()) {
    const Status status = system_error("watch a process (pidfd_open)", errno);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return status;
  }
  return child;
}

std::optional<SpawnError> take_spawn_error(const Fd& errors) {
  int report[2];
  if (::read(errors.get(), report, sizeof report) != sizeof report) return std::nullopt;
  return SpawnError{report[0], report[1]};
}

std::optional<Exit> reap(const Fd& pidfd) {
  siginfo_t info{};
  int done = 0;
  do {
    done = ::waitid(kPidfd, static_cast<id_t>(pidfd.get()), &info, WEXITED | WNOHANG);
  } while (done != 0 && errno == EINTR);
  if (done != 0 || info.si_pid == 0) return std::nullopt;
  return to_exit(info);
}

bool reap_strangers(const std::vector<pid_t>& keep) {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (info.si_pid == 0 || std::find(keep.begin(), keep.end(), info.si_pid) != keep.end()) return true;
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

void signal_group(const Child& child, int signal) {
  if (::kill(-child.pid, signal) != 0) signal_process(child.pidfd, signal);
}

void signal_process(const Fd& pidfd, int signal) {
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

Status become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return system_error("adopt orphans (PR_SET_CHILD_SUBREAPER)", errno);
  return {};
}

uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const uint64_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

std::string own_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<size_t>(length)) : std::string();
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

pid_t own_group() {
  return ::getpgrp();
}

pid_t own_pid() {
  return ::getpid();
}

std::string random_name() {
  std::array<unsigned char, 16> bytes{};
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got > 0) done += static_cast<size_t>(got);
    RONDE_CHECK(got > 0 || errno == EINTR, "the system has no randomness");
  }
  std::string out;
  for (const unsigned char byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace ronde::os
