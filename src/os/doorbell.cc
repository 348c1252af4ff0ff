// SPDX-License-Identifier: Apache-2.0
#include "os/doorbell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace ronde::os {

Result<Doorbell> Doorbell::create() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return system_error("create a doorbell (eventfd)", errno);
  return Doorbell(std::move(fd));
}

void Doorbell::ring() const {
  const uint64_t one = 1;
  // EAGAIN: the counter is full, so the bell is ringing already.
  while (::write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Doorbell::drain() const {
  uint64_t rings = 0;
  while (::read(fd_.get(), &rings, sizeof rings) < 0 && errno == EINTR) {
  }
}

}  // namespace ronde::os
