// SPDX-License-Identifier: Apache-2.0
// Processes: start a program under strict conditions, wait for it by descriptor, signal it and its group.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/fd.h"

namespace ronde::os {

// How a process ended.
struct Exit {
  bool by_signal = false;
  int code = 0;  // exit status, or number of the signal
};

struct Program {
  std::string path;                      // what is executed; found already
  std::vector<std::string> arguments;    // with argv[0]
  std::vector<std::string> environment;  // "K=V", byte for byte
  int stdin_fd = 0;                      // this one and the next two: in their place already, or above 2
  int stdout_fd = 1;
  int stderr_fd = 2;
  std::vector<int> inherited;  // further close-on-exec descriptors that the program gets under the same numbers
  bool own_session = true;
  pid_t group = -1;  // without a session of its own: the process group to join; 0: a new one, -1: the parent's
  bool die_with_parent = true;    // SIGKILL when the thread that started it ends
  sigset_t mask{};                // of blocked signals
  uint64_t descriptor_limit = 0;  // soft limit; 0: the parent's
};

struct Child {
  pid_t pid = -1;
  Fd pidfd;  // readable once it has ended
};

// Forks and executes. An error after the fork is written to `errors` as two ints (tag, errno) in one write, and the
// child ends with status 127. A file without an interpreter line is run by /bin/sh, as a shell would. Thread: any; in
// the child only async-signal-safe functions run.
Result<Child> spawn(const Program& program, const Fd& errors, int tag);
struct SpawnError {
  int tag = 0;
  int error = 0;
};
// What spawned children wrote; `errors` is the non-blocking reading end.
std::optional<SpawnError> take_spawn_error(const Fd& errors);

// How the child ended, if it has. It is reaped.
std::optional<Exit> reap(const Fd& pidfd);
// Reaps ended children up to the first one that `keep` names: those have a pidfd and are reaped by it.
// False: there are no children.
bool reap_strangers(const std::vector<pid_t>& keep);

// To the process group that `child`, not yet reaped, leads; to itself alone as long as it has not made one.
void signal_group(const Child& child, int signal);
void signal_process(const Fd& pidfd, int signal);

// Orphaned descendants become children of this process.
Status become_subreaper();
// As many descriptors as the system lets this process have. Gives the soft limit that was in force before.
uint64_t raise_descriptor_limit();

std::string own_program();
// "K=V", byte for byte.
std::vector<std::string> own_environment();
pid_t own_group();
pid_t own_pid();
// From the system's generator, as 32 hexadecimal digits.
std::string random_name();

}  // namespace ronde::os
