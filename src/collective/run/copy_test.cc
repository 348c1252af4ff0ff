// SPDX-License-Identifier: Apache-2.0
#include "collective/run/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace ronde::collective {
namespace {

void expect_copies(Copy copy, size_t to_offset, size_t from_offset, size_t bytes) {
  std::vector<std::byte> from(from_offset + bytes);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
  constexpr size_t kMargin = 64;
  std::vector<std::byte> to(kMargin + to_offset + bytes + kMargin, std::byte{0xEE});
  copy(to.data() + kMargin + to_offset, from.data() + from_offset, bytes);
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t at = i - kMargin - to_offset;
    const bool inside = i >= kMargin + to_offset && at < bytes;
    ASSERT_EQ(to[i], inside ? from[from_offset + at] : std::byte{0xEE}) << bytes << " bytes, at " << i;
  }
}

TEST(Copy, moves_every_byte_and_no_other_at_any_alignment) {
  for (const Copy copy : {copy_bytes, stream_bytes})
    for (const size_t bytes : {0, 1, 63, 2047, 2048, 2049, 2111, 2112, 5000, 65536 + 3})
      for (const size_t to_offset : {0, 1, 16, 63})
        for (const size_t from_offset : {0, 3, 32}) expect_copies(copy, to_offset, from_offset, bytes);
}

TEST(Copy, of_nothing_takes_null) {
  copy_bytes(nullptr, nullptr, 0);
  stream_bytes(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace ronde::collective
