// SPDX-License-Identifier: Apache-2.0
#include "os/doorbell.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "os/event_set.h"

namespace ronde::os {
namespace {

using namespace std::chrono_literals;

bool rings(const Doorbell& bell) {
  const int fd = bell.fd();
  return sleep_until_readable({&fd, 1}, Time{});
}

TEST(Doorbell, is_silent_until_rung_and_after_drain) {
  const Doorbell bell = Doorbell::create().value();
  EXPECT_FALSE(rings(bell));
  bell.ring();
  bell.ring();
  EXPECT_TRUE(rings(bell));
  EXPECT_TRUE(rings(bell));
  bell.drain();
  EXPECT_FALSE(rings(bell));
  bell.drain();
}

TEST(Doorbell, is_closed_on_exec) {
  const Doorbell bell = Doorbell::create().value();
  EXPECT_NE(::fcntl(bell.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Doorbell, a_full_counter_still_rings_and_blocks_nobody) {
  const Doorbell bell = Doorbell::create().value();
  const uint64_t nearly_full = UINT64_MAX - 1;
  ASSERT_EQ(::write(bell.fd(), &nearly_full, sizeof nearly_full), 8);
  bell.ring();
  EXPECT_TRUE(rings(bell));
}

TEST(Doorbell, wakes_a_sleeping_thread) {
  const Doorbell bell = Doorbell::create().value();
  bool woken = false;
  std::thread sleeper([&] {
    const int fd = bell.fd();
    woken = sleep_until_readable({&fd, 1}, std::chrono::steady_clock::now() + 30s);
  });
  bell.ring();
  sleeper.join();
  EXPECT_TRUE(woken);
}

TEST(Doorbell, a_duplicate_of_its_descriptor_rings_the_same_bell) {
  const Doorbell bell = Doorbell::create().value();
  const Doorbell other(Fd(::dup(bell.fd())));
  other.ring();
  EXPECT_TRUE(rings(bell));
}

}  // namespace
}  // namespace ronde::os
