// SPDX-License-Identifier: Apache-2.0
#include "os/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace ronde::os {
namespace {

int open_null() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}
bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(Fd, closes_at_the_end_of_its_life_and_keeps_errno) {
  const int raw = open_null();
  errno = ENOENT;
  { const Fd fd(raw); }
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(is_open(raw));
}

TEST(Fd, moves_leave_one_owner) {
  const int raw = open_null();
  Fd first(raw);
  Fd second(std::move(first));
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(second.get(), raw);
  const int other = open_null();
  Fd third(other);
  third = std::move(second);
  EXPECT_FALSE(is_open(other));
  EXPECT_TRUE(is_open(raw));
  auto& self = third;
  third = std::move(self);
  EXPECT_TRUE(is_open(raw));
}

TEST(Fd, release_gives_the_descriptor_away) {
  Fd fd(open_null());
  const int raw = fd.release();
  fd.reset();
  EXPECT_TRUE(is_open(raw));
  const Fd again(raw);
}

}  // namespace
}  // namespace ronde::os
