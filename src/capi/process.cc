// SPDX-License-Identifier: Apache-2.0
#include "capi/process.h"

#include <pthread.h>
#include <unistd.h>

#include "os/fd.h"

namespace ronde::capi {

Process& Process::instance() {
  static Process* const process = new Process;
  return *process;
}

void Process::watch_forks() {
  if (owner_pid_.exchange(getpid()) != 0) return;
  RONDE_CHECK(pthread_atfork(nullptr, nullptr, &Process::in_child) == 0, "no memory for a fork handler");
}

void Process::in_child() {
  instance().forked_ = true;
  os::close_owned_after_fork();
}

Status Process::check_not_forked() const {
  if (!forked_) return {};
  return Status(Code::NotInitialized, cat("ronde was initialised in pid ", owner_pid_.load(), "; pid ", getpid(),
                                          " is a child that it forked and has no engine: call ronde only in the "
                                          "parent, or start a new process (spawn)"));
}

}  // namespace ronde::capi
