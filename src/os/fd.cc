// SPDX-License-Identifier: Apache-2.0
#include "os/fd.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace ronde::os {
namespace {

constexpr int kNoted = 1 << 16;
constexpr int kBits = 64;
std::array<std::atomic<uint64_t>, kNoted / kBits> owned_bits{};

}  // namespace

void Fd::note(int fd, bool owned) {
  if (fd < 0 || fd >= kNoted) return;
  const uint64_t bit = uint64_t{1} << (fd % kBits);
  auto& word = owned_bits[static_cast<size_t>(fd / kBits)];
  if (owned) {
    word.fetch_or(bit, std::memory_order_relaxed);
  } else {
    word.fetch_and(~bit, std::memory_order_relaxed);
  }
}

void close_owned_after_fork() {
  for (size_t w = 0; w < owned_bits.size(); ++w) {
    uint64_t bits = owned_bits[w].exchange(0, std::memory_order_relaxed);
    for (int fd = static_cast<int>(w) * kBits; bits != 0; bits >>= 1, ++fd) {
      if (bits & 1) ::close(fd);
    }
  }
}

void Fd::reset() {
  if (fd_ < 0) return;
  note(fd_, false);
  const int kept = errno;           // often closed on the way out with an error
  ::close(std::exchange(fd_, -1));  // not repeated on EINTR: Linux has closed it then
  errno = kept;
}

}  // namespace ronde::os
