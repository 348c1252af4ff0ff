// SPDX-License-Identifier: Apache-2.0
// Waiting: what a user's thread that waits in the engine does when nothing can be done: pause, yield, or sleep. Pure.
//
// Idea: between idle cores a sleep and its wake-up cost 50 µs and more, a yield next to nothing; beside somebody who
// computes a yield costs a time slice of milliseconds, a sleep some 10 µs. So a thread yields while all ranks of the
// host wait, and for a moment after the last work (the peer is probably between two calls), and sleeps otherwise. A
// yield that took long means that somebody else computes: then it sleeps at once for a while.
#pragma once

#include "base/clock.h"
#include "base/settings.h"

namespace ronde::engine {

enum class Rest : uint8_t { Pause, Yield, Sleep };

// How many threads the ranks of this host will run, against the cores they may use.
struct HostLoad {
  int threads = 1;
  int cores = 1;
};
HostLoad host_load(int local_size);

class Waiting {
 public:
  static constexpr Duration kTogether = std::chrono::microseconds(50);  // while all wait
  static constexpr Duration kAlone = std::chrono::microseconds(15);     // else
  static constexpr Duration kLongYield = std::chrono::microseconds(100);
  static constexpr Duration kBackOff = std::chrono::milliseconds(10);

  Waiting(Spin mode, const HostLoad& load);

  // The last time something was done.
  void worked(Time now) { worked_ = now; }
  Rest next(Time now, bool all_in_wait) const;
  void yielded(Duration took, Time now);

 private:
  bool pause_;
  bool off_;
  Time worked_{};
  Time back_off_until_{};
};

}  // namespace ronde::engine
