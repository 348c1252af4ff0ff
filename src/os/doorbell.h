// SPDX-License-Identifier: Apache-2.0
// Doorbell: an eventfd that wakes one sleeper, in this or another process. Rings before the sleep are not lost.
// Thread: ring() from any; drain() from the sleeper.
#pragma once

#include "base/status.h"
#include "os/fd.h"

namespace ronde::os {

class Doorbell {
 public:
  static Result<Doorbell> create();
  explicit Doorbell(Fd fd) : fd_(std::move(fd)) {}
  void ring() const;
  void drain() const;  // never blocks
  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
};

}  // namespace ronde::os
