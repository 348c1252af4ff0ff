// SPDX-License-Identifier: Apache-2.0
// Signals as events: blocked for the whole process and read from a descriptor, so that no code runs in a handler.
#pragma once

#include <csignal>
#include <optional>
#include <span>

#include "base/status.h"
#include "os/fd.h"

namespace ronde::os {

struct ArrivedSignal {
  int number = 0;
  bool from_kernel = false;  // a key of the terminal, and not another process
};

class Signals {
 public:
  // Blocks `watched` and `discarded` from now on; threads started later inherit that. A signal that was ignored when
  // the process began (nohup, a job in the background of a script) stays ignored and is not watched. SIGCHLD is set to
  // its default. To be made before the first thread.
  static Result<Signals> watch(std::span<const int> watched, std::span<const int> discarded);

  int fd() const { return fd_.get(); }
  // The next signal that has arrived.
  std::optional<ArrivedSignal> take();
  // The mask before watch(): what children must begin with.
  const sigset_t& original_mask() const { return original_; }

 private:
  Signals(Fd fd, const sigset_t& original) : fd_(std::move(fd)), original_(original) {}
  Fd fd_;
  sigset_t original_;
};

}  // namespace ronde::os
