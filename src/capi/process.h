// SPDX-License-Identifier: Apache-2.0
// What the process as a whole keeps for its engines: who initialised it, the services of a job started by hand, and
// what happens at fork. The one mutable singleton of the project; leaked at exit, since frameworks' threads may outlive
// static destructors.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "engine/bootstrap.h"
#include "ronde/ronde.h"

namespace ronde::capi {

class Process {
 public:
  static Process& instance();

  // Before the first engine: from now on a fork closes our descriptors in the child and marks it.
  void watch_forks();
  // Ok, or in a child of fork an error that names both processes.
  Status check_not_forked() const;

  std::mutex init_mutex;  // guards services and handed_out: one init at a time
  engine::ProcessServices services;
  // What ronde_init gave to users; never freed, so that a call after shutdown meets an object.
  std::vector<ronde_engine*> handed_out;

 private:
  Process() = default;
  static void in_child();
  std::atomic<int> owner_pid_{0};
  std::atomic<bool> forked_{false};
};

}  // namespace ronde::capi
