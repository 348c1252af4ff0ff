// SPDX-License-Identifier: Apache-2.0
#include "os/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace ronde::os {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Result<Signals> Signals::watch(std::span<const int> watched, std::span<const int> discarded) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &standard, nullptr);  // ignored, it would take the children's statuses away

  sigset_t seen;
  sigemptyset(&seen);
  for (const int signal : watched) {
    if (!is_ignored(signal)) sigaddset(&seen, signal);
  }
  sigset_t blocked = seen;
  for (const int signal : discarded) sigaddset(&blocked, signal);
  sigset_t original;
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &blocked, &original); error != 0) {
    return system_error("block signals", error);
  }
  Fd fd(::signalfd(-1, &seen, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return system_error("watch signals (signalfd)", errno);
  return Signals(std::move(fd), original);
}

std::optional<ArrivedSignal> Signals::take() {
  signalfd_siginfo info;
  for (;;) {
    const ssize_t got = ::read(fd_.get(), &info, sizeof info);
    if (got == sizeof info) return ArrivedSignal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
    if (got < 0 && errno == EINTR) continue;
    return std::nullopt;
  }
}

}  // namespace ronde::os
