// SPDX-License-Identifier: Apache-2.0
#include "engine/waiting.h"

#include <gtest/gtest.h>

namespace ronde::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Time kStart{std::chrono::hours(1)};

Waiting waiting(Spin spin, HostLoad load) {
  Waiting out(spin, load);
  out.worked(kStart);
  return out;
}

TEST(Waiting, pauses_only_where_every_thread_of_the_host_has_a_core) {
  EXPECT_EQ(waiting(Spin::Auto, {.threads = 2, .cores = 2}).next(kStart, true), Rest::Pause);
  EXPECT_EQ(waiting(Spin::Auto, {.threads = 4, .cores = 2}).next(kStart, true), Rest::Yield);
  EXPECT_EQ(waiting(Spin::Yield, {.threads = 1, .cores = 2}).next(kStart, true), Rest::Yield);
  EXPECT_EQ(waiting(Spin::Pause, {.threads = 9, .cores = 2}).next(kStart, true), Rest::Pause);
}

TEST(Waiting, does_not_pause_while_somebody_does_not_wait) {
  EXPECT_EQ(waiting(Spin::Auto, {.threads = 2, .cores = 2}).next(kStart, false), Rest::Yield);
}

TEST(Waiting, sleeps_when_its_time_is_up_sooner_if_not_all_wait) {
  const Waiting w = waiting(Spin::Auto, {.threads = 4, .cores = 2});
  EXPECT_EQ(w.next(kStart + microseconds(40), true), Rest::Yield);
  EXPECT_EQ(w.next(kStart + microseconds(40), false), Rest::Sleep);
  EXPECT_EQ(w.next(kStart + microseconds(60), true), Rest::Sleep);
}

TEST(Waiting, after_a_long_yield_sleeps_at_once_for_a_while) {
  Waiting w = waiting(Spin::Auto, {.threads = 4, .cores = 2});
  w.yielded(microseconds(20), kStart);
  EXPECT_EQ(w.next(kStart, true), Rest::Yield);
  w.yielded(milliseconds(4), kStart);
  w.worked(kStart + milliseconds(5));
  EXPECT_EQ(w.next(kStart + milliseconds(5), true), Rest::Sleep);
  w.worked(kStart + milliseconds(11));
  EXPECT_EQ(w.next(kStart + milliseconds(11), true), Rest::Yield);
}

TEST(Waiting, off_means_sleep) {
  EXPECT_EQ(waiting(Spin::Off, {.threads = 1, .cores = 2}).next(kStart, true), Rest::Sleep);
}

}  // namespace
}  // namespace ronde::engine
