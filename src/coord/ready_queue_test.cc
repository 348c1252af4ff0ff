// SPDX-License-Identifier: Apache-2.0
#include "coord/ready_queue.h"

#include <gtest/gtest.h>

namespace ronde::coord {
namespace {

using std::chrono::milliseconds;

Time at(int64_t ms) {
  return Time(milliseconds(ms));
}

Unit unit_of(int64_t bytes, int64_t ready_ms, const std::vector<Rank>& held = {}) {
  Unit out;
  out.bytes = bytes;
  out.ready_at = at(ready_ms);
  out.held = RankSet(held);
  return out;
}

TEST(ReadyQueue, what_nobody_holds_is_due_at_once) {
  ReadyQueue queue({}, {0, 1});
  EXPECT_EQ(queue.next_due(), kNever);
  Unit a = unit_of(4, 0);
  queue.push(a);
  EXPECT_EQ(queue.next_due(), Time::min());
  EXPECT_EQ(queue.take_due(at(0)), (std::vector<Unit*>{&a}));
  EXPECT_EQ(queue.next_due(), kNever);
  EXPECT_TRUE(queue.take_due(at(0)).empty());
}

TEST(ReadyQueue, what_is_held_waits_for_ever_unless_cut_early) {
  ReadyQueue queue({.cut_early = false, .batch_bytes = 1, .hold = milliseconds(1)}, {0, 1});
  Unit a = unit_of(1000, 0, {1});
  Unit b = unit_of(1000, 0);
  queue.push(a);
  queue.push(b);
  EXPECT_EQ(queue.take_due(at(999)), (std::vector<Unit*>{&b}));
  EXPECT_EQ(queue.next_due(), kNever);
  a.held.clear();
  queue.on_released(a);
  EXPECT_EQ(queue.take_due(at(999)), (std::vector<Unit*>{&a}));
}

TEST(ReadyQueue, held_bytes_make_everything_due) {
  ReadyQueue queue({.cut_early = true, .batch_bytes = 100, .hold = milliseconds(5)}, {0, 1});
  Unit a = unit_of(60, 0, {1});
  Unit b = unit_of(60, 0, {0});
  queue.push(a);
  EXPECT_TRUE(queue.take_due(at(0)).empty());
  queue.push(b);
  EXPECT_EQ(queue.next_due(), Time::min());
  EXPECT_EQ(queue.take_due(at(0)), (std::vector<Unit*>{&a, &b}));
}

TEST(ReadyQueue, the_oldest_held_unit_makes_everything_due_and_the_hold_doubles) {
  ReadyQueue queue({.cut_early = true, .batch_bytes = 1000, .hold = milliseconds(5)}, {0, 1});
  Unit a = unit_of(1, 10, {1});
  Unit b = unit_of(1, 14, {1});
  queue.push(a);
  queue.push(b);
  EXPECT_EQ(queue.next_due(), at(15));
  EXPECT_TRUE(queue.take_due(at(14)).empty());
  EXPECT_EQ(queue.take_due(at(15)), (std::vector<Unit*>{&a, &b}));
  Unit c = unit_of(1, 20, {1});
  queue.push(c);
  EXPECT_EQ(queue.next_due(), at(30));
  EXPECT_EQ(queue.take_due(at(30)).size(), 1u);
  // One flush is not the end of the step; the last one is.
  queue.on_flush(1);
  queue.push(c);
  EXPECT_EQ(queue.next_due(), at(40));
  queue.on_flush(0);
  EXPECT_EQ(queue.next_due(), at(25));
}

TEST(ReadyQueue, a_unit_that_failed_is_due_no_more) {
  ReadyQueue queue({.cut_early = true, .batch_bytes = 100, .hold = milliseconds(5)}, {0, 1});
  Unit a = unit_of(90, 0, {1});
  Unit b = unit_of(90, 0, {1});
  Unit c = unit_of(90, 0);
  queue.push(a);
  queue.remove(a);
  queue.remove(c);
  EXPECT_EQ(queue.next_due(), kNever);
  queue.push(b);
  EXPECT_EQ(queue.next_due(), at(5));
  queue.push(c);
  queue.remove(c);
  EXPECT_EQ(queue.next_due(), at(5));
}

TEST(ReadyQueue, a_hold_without_end_is_no_deadline) {
  ReadyQueue queue({.cut_early = true, .batch_bytes = 100, .hold = Duration::max()}, {0, 1});
  Unit a = unit_of(1, 10, {1});
  queue.push(a);
  EXPECT_EQ(queue.next_due(), kNever);
  EXPECT_TRUE(queue.take_due(at(1'000'000)).empty());
}

}  // namespace
}  // namespace ronde::coord
