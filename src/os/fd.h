// SPDX-License-Identifier: Apache-2.0
// Fd: an owned file descriptor. Every descriptor of the project is close-on-exec. Which numbers are owned is noted,
// beside the kernel's own table, so that a child of fork can close what it inherited: sockets held open there would
// hide a death.
#pragma once

#include <utility>

namespace ronde::os {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) { note(fd_, true); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() {
    note(fd_, false);
    return std::exchange(fd_, -1);
  }
  void reset();

 private:
  static void note(int fd, bool owned);
  int fd_ = -1;
};

// In a child of fork: closes every descriptor that an Fd owned in the parent. Async-signal-safe; the Fd objects that
// the child inherited must not be used, nor destroyed, any more.
void close_owned_after_fork();

}  // namespace ronde::os
