// SPDX-License-Identifier: Apache-2.0
// Mailbox: events from the store's thread for the launcher's. Thread: put() from any, take() from the launcher's.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "launch/policy.h"
#include "os/doorbell.h"

namespace ronde::launch {

class Mailbox {
 public:
  explicit Mailbox(os::Doorbell bell) : bell_(std::move(bell)) {}
  void put(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    bell_.ring();
  }
  std::vector<Event> take() {
    bell_.drain();
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }
  int fd() const { return bell_.fd(); }

 private:
  os::Doorbell bell_;
  std::mutex mutex_;  // guards events_
  std::vector<Event> events_;
};

}  // namespace ronde::launch
