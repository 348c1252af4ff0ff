// SPDX-License-Identifier: Apache-2.0
#include "collective/run/ring_needs.h"

#include <gtest/gtest.h>

namespace ronde::collective {
namespace {

TEST(RingNeeds, of_allreduce_send_what_the_round_before_received) {
  for (int size = 2; size <= 9; ++size) {
    for (int index = 0; index < size; ++index) {
      const auto needs = needs_of(ring_allreduce(index, size, 0));
      EXPECT_EQ(needs[0].send_after_receive, kNoRound);
      for (int r = 1; r < 2 * (size - 1); ++r) EXPECT_EQ(needs[r].send_after_receive, r - 1);
      for (int r = 0; r < size - 1; ++r) EXPECT_EQ(needs[r].receive_after_receive, kNoRound);
      for (int r = 0; r < size - 1; ++r) EXPECT_EQ(needs[size - 1 + r].receive_after_send, r);
      EXPECT_TRUE(kept_chunks(ring_allreduce(index, size, 0)).empty());
    }
  }
}

TEST(RingNeeds, keep_what_is_never_received) {
  EXPECT_EQ(kept_chunks(ring_allgather(2, 5, 0)), std::vector<int>{2});
  EXPECT_EQ(kept_chunks(ring_broadcast(1, 3, 1)), (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(kept_chunks(ring_broadcast(0, 3, 1)).empty());
}

TEST(RingNeeds, see_every_hazard_of_one_chunk) {
  Schedule schedule{.chunks = 2, .rounds = {}};
  schedule.rounds = {{.send_to = 1, .send_chunk = 0, .recv_from = 1, .recv_chunk = 1},
                     {},
                     {.recv_from = 1, .recv_chunk = 0},
                     {.send_to = 1, .send_chunk = 0, .recv_from = 1, .recv_chunk = 1},
                     {.recv_from = 1, .recv_chunk = 0}};
  const auto needs = needs_of(schedule);
  EXPECT_EQ(needs[2].receive_after_send, 0);
  EXPECT_EQ(needs[2].receive_after_receive, kNoRound);
  EXPECT_EQ(needs[3].send_after_receive, 2);
  EXPECT_EQ(needs[3].receive_after_receive, 0);
  EXPECT_EQ(needs[3].receive_after_send, kNoRound);
  EXPECT_EQ(needs[4].receive_after_send, 3);
  EXPECT_EQ(needs[4].receive_after_receive, 2);
}

}  // namespace
}  // namespace ronde::collective
