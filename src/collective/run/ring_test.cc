// SPDX-License-Identifier: Apache-2.0
// The ring executor's use of its links.
#include "collective/run/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/run/test_groups.h"

namespace ronde::collective {
namespace {

constexpr size_t kSegment = 64;

TestBatch bytes_batch(uint64_t number, OpKind op, int ranks, int64_t bytes) {
  Random random(number);
  Batch batch;
  batch.number = number;
  batch.members = first_ranks(ranks);
  batch.op = op;
  batch.dtype = DType::U8;
  batch.tensors.push_back({.name = "t", .number = 0, .shape = Shape{bytes}, .first_dims = {}});
  return make_test_batch(batch, Fill::Small, false, random);
}

TEST(RingRun, allreduce_sends_two_times_n_minus_one_of_n_parts) {
  for (const int ranks : {2, 3, 4, 5}) {
    RingGroup group(ranks, kSegment);
    TestBatch test = bytes_batch(1, OpKind::Allreduce, ranks, 600);
    Random random(1);
    run_interleaved(group, ranks, {&test}, random);
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(group.bytes_sent(rank), static_cast<uint64_t>(600 * 2 * (ranks - 1) / ranks));
  }
}

TEST(RingRun, opens_links_to_its_neighbours_only_and_one_stream_for_each_parity) {
  RingGroup group(5, kSegment);
  TestBatch first = bytes_batch(2, OpKind::Allreduce, 5, 1000);
  TestBatch second = bytes_batch(4, OpKind::Broadcast, 5, 1000);
  Random random(1);
  run_interleaved(group, 5, {&first, &second}, random);
  EXPECT_EQ(group.table(0).opened(), 2U);
  TestBatch odd = bytes_batch(5, OpKind::Allreduce, 5, 1000);
  run_interleaved(group, 5, {&odd}, random);
  EXPECT_EQ(group.table(0).opened(), 4U);
}

// The test stands in for ranks 0 and 2 around rank 1.
TEST(RingRun, passes_a_segment_on_before_the_rest_of_its_chunk_has_come) {
  RingGroup group(3, kSegment);
  TestBatch test = bytes_batch(2, OpKind::Allreduce, 3, 3 * 4 * kSegment);
  const auto running = group.start(1, test.bound[1]);
  TestLink& left = group.table(0).link(1, 0);
  TestLink& right = group.table(2).link(1, 0);
  std::vector<Bytes> from_rank_1(5, Bytes(kSegment));
  for (int i = 0; i < 4; ++i) right.post_recv({.epoch = 7, .step = 0, .batch = 2}, from_rank_1[static_cast<size_t>(i)]);
  right.post_recv({.epoch = 7, .step = 1, .batch = 2}, from_rank_1[4]);

  const Bytes one_segment(kSegment, std::byte{1});
  const std::vector<ByteSpan> pieces{one_segment};
  left.post_send({.epoch = 7, .step = 0, .batch = 2}, pieces);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(running->advance().ok());
  ASSERT_EQ(right.recvs_done(), 5U) << "the first segment of round 1 waits for more than the first of round 0";
  for (size_t i = 0; i < kSegment; ++i) {
    const auto own = static_cast<uint8_t>(test.originals[1][0][i]);  // chunk 0 is what comes from the left
    EXPECT_EQ(static_cast<uint8_t>(from_rank_1[4][i]), static_cast<uint8_t>(own + 1));
  }
}

TEST(RingRun, posts_receives_before_sends) {
  RingGroup group(2, kSegment);
  TestBatch test = bytes_batch(2, OpKind::Allreduce, 2, 10 * kSegment);
  const auto running = group.start(0, test.bound[0]);
  ASSERT_TRUE(running->advance().ok());
  TestLink& peer = group.table(1).link(0, 0);
  const Bytes segment(kSegment);
  const std::vector<ByteSpan> pieces{segment};
  for (int i = 0; i < 4; ++i) peer.post_send({.epoch = 7, .step = 0, .batch = 2}, pieces);
  ASSERT_TRUE(peer.advance().ok());
  EXPECT_EQ(peer.sends_done(), 4U) << "rank 0 expects less than a window of segments";
}

TEST(RingRun, a_broken_link_ends_the_batch_and_closes_the_other_links_with_its_reason) {
  RingGroup group(3, kSegment);
  TestBatch test = bytes_batch(2, OpKind::Allreduce, 3, 1000);
  const auto running = group.start(1, test.bound[1]);
  ASSERT_TRUE(running->advance().ok());
  group.table(1).link(0, 0).close(Status(Code::PeerLost, "rank 0 is gone"));
  const auto failed = running->advance();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::PeerLost);
  EXPECT_EQ(group.table(1).link(2, 0).closed().message(), "rank 0 is gone");
  EXPECT_EQ(running->advance().status().code(), Code::PeerLost) << "an error is final";
}

TEST(RingRun, a_batch_that_is_given_up_closes_its_links) {
  RingGroup group(3, kSegment);
  TestBatch test = bytes_batch(12, OpKind::Allreduce, 3, 1000);
  auto running = group.start(1, test.bound[1]);
  ASSERT_TRUE(running->advance().ok());
  running.reset();
  for (const int peer : {0, 2}) {
    EXPECT_EQ(group.table(1).link(peer, 0).closed().code(), Code::Aborted);
    EXPECT_THAT(group.table(1).link(peer, 0).closed().message(), testing::HasSubstr("batch 12"));
  }
}

TEST(RingRun, a_batch_that_is_done_leaves_its_links_open) {
  RingGroup group(2, kSegment);
  TestBatch test = bytes_batch(2, OpKind::Allreduce, 2, 100);
  Random random(1);
  run_interleaved(group, 2, {&test}, random);
  EXPECT_TRUE(group.table(0).link(1, 0).closed().ok());
}

TEST(RingRun, members_that_differ_in_the_size_of_a_tensor_are_told) {
  RingGroup group(2, kSegment);
  TestBatch mine = bytes_batch(2, OpKind::Allreduce, 2, 100);
  TestBatch theirs = bytes_batch(2, OpKind::Allreduce, 2, 102);
  const auto a = group.start(0, mine.bound[0]);
  const auto b = group.start(1, theirs.bound[1]);
  Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    status = a->advance().status();
    if (status.ok()) status = b->advance().status();
  }
  EXPECT_EQ(status.code(), Code::Internal);
}

}  // namespace
}  // namespace ronde::collective
