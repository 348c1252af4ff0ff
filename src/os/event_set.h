// SPDX-License-Identifier: Apache-2.0
// EventSet: descriptors whose readiness is collected without blocking, and the one place where threads sleep.
// Edge-triggered: a source is reported once when it becomes ready; its owner then reads or writes until EAGAIN.
// Nothing has to be armed before a sleep. A set is itself a descriptor that one can sleep on.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "base/clock.h"
#include "base/status.h"
#include "os/fd.h"

namespace ronde::os {

class EventSet {
 public:
  // Called from collect() with what became possible. Lifetime: until remove().
  class Source {
   public:
    virtual ~Source() = default;
    virtual void on_ready(bool readable, bool writable) = 0;
  };

  static Result<EventSet> create();
  Status add(int fd, Source* source);
  void remove(int fd);
  // Tells every source that became ready since the last call; returns how many. Never blocks. on_ready() may add and
  // remove sources.
  int collect();
  int fd() const { return epoll_.get(); }

 private:
  explicit EventSet(Fd epoll) : epoll_(std::move(epoll)) {}
  Fd epoll_;
  std::unordered_map<int, Source*> sources_;
};

// Sleeps until one of the descriptors is readable (or broken) or the deadline has passed. False: the deadline. A signal
// does not end the sleep.
bool sleep_until_readable(std::span<const int> fds, Time deadline);
bool sleep_until_writable(int fd, Time deadline);

// How the engine sleeps; injected together with the Clock, so that a test that moves the time wakes the sleepers.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  virtual bool sleep(std::span<const int> fds, Time deadline) = 0;
};

class SystemSleeper final : public Sleeper {
 public:
  bool sleep(std::span<const int> fds, Time deadline) override { return sleep_until_readable(fds, deadline); }
};

}  // namespace ronde::os
