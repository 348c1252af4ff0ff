// SPDX-License-Identifier: Apache-2.0
// The protocol of the staged collectives: who waits for whom, and who is woken.
#include "collective/run/staged.h"

#include <gtest/gtest.h>

#include "collective/run/test_groups.h"

namespace ronde::collective {
namespace {

constexpr size_t kSlot = 4096;

TestBatch one_tensor(uint64_t number, OpKind op, int ranks, int64_t bytes) {
  Random random(number);
  Batch batch;
  batch.number = number;
  batch.members = first_ranks(ranks);
  batch.op = op;
  batch.dtype = DType::U8;
  batch.tensors.push_back({.name = "t", .number = 0, .shape = Shape{bytes}, .first_dims = {}});
  return make_test_batch(batch, Fill::Small, false, random);
}

// Advances until it is blocked or done.
Progress drive(Running& running) {
  Progress progress = Progress::Working;
  while (progress == Progress::Working) progress = running.advance().value();
  return progress;
}

TEST(Staged, a_root_is_done_before_a_reader_has_begun_if_its_slots_suffice) {
  StagedGroup group(2, 2, kSlot);
  TestBatch test = one_tensor(1, OpKind::Broadcast, 2, 2 * kSlot);
  EXPECT_EQ(drive(*group.start(0, test.bound[0])), Progress::Done);
  EXPECT_EQ(drive(*group.start(1, test.bound[1])), Progress::Done);
  expect_reference(test);
}

TEST(Staged, a_slot_is_written_again_only_when_its_readers_are_through) {
  StagedGroup group(3, 2, kSlot);
  TestBatch first = one_tensor(1, OpKind::Broadcast, 3, 2 * kSlot);
  TestBatch second = one_tensor(2, OpKind::Broadcast, 3, kSlot);
  ASSERT_EQ(drive(*group.start(0, first.bound[0])), Progress::Done);
  const auto root = group.start(0, second.bound[0]);
  EXPECT_EQ(drive(*root), Progress::Blocked);
  ASSERT_EQ(drive(*group.start(1, first.bound[1])), Progress::Done);
  EXPECT_EQ(drive(*root), Progress::Blocked) << "one reader has not begun";
  ASSERT_EQ(drive(*group.start(2, first.bound[2])), Progress::Done);
  EXPECT_EQ(drive(*root), Progress::Done);
  expect_reference(first);
}

TEST(Staged, a_slot_waits_for_the_readers_of_its_last_batch_not_of_all_ranks) {
  StagedGroup group(3, 1, kSlot);
  TestBatch pair = one_tensor(1, OpKind::Broadcast, 2, 100);
  TestBatch all = one_tensor(2, OpKind::Broadcast, 3, 100);
  ASSERT_EQ(drive(*group.start(0, pair.bound[0])), Progress::Done);
  ASSERT_EQ(drive(*group.start(1, pair.bound[1])), Progress::Done);
  EXPECT_EQ(drive(*group.start(0, all.bound[0])), Progress::Done) << "rank 2 never reads batch 1";
}

TEST(Staged, small_batches_in_a_row_use_different_slots) {
  StagedGroup group(2, 4, kSlot);
  for (uint64_t number = 1; number <= 4; ++number) {
    TestBatch test = one_tensor(number, OpKind::Broadcast, 2, 8);
    EXPECT_EQ(drive(*group.start(0, test.bound[0])), Progress::Done) << "batch " << number;
  }
}

TEST(Staged, a_batch_without_elements_waits_for_nobody) {
  StagedGroup group(2, 2, kSlot);
  for (const OpKind op : {OpKind::Allreduce, OpKind::Broadcast}) {
    TestBatch test = one_tensor(1, op, 2, 0);
    EXPECT_EQ(drive(*group.start(0, test.bound[0])), Progress::Done);
  }
}

TEST(Staged, a_small_allreduce_wakes_the_others_once_for_each_of_two_words) {
  StagedGroup group(4, 2, kSlot);
  TestBatch test = one_tensor(1, OpKind::Allreduce, 4, 16);
  Random random(1);
  run_interleaved(group, 4, {&test}, random);
  EXPECT_EQ(group.waker().calls, 4U * 2U);
  EXPECT_EQ(group.waker().ranks, 4U * 2U * 3U);
}

TEST(Staged, a_large_allreduce_wakes_the_others_once_for_each_of_three_words_of_a_block) {
  StagedGroup group(2, 2, kSlot);
  TestBatch test = one_tensor(1, OpKind::Allreduce, 2, 5 * kSlot);
  Random random(1);
  run_interleaved(group, 2, {&test}, random);
  EXPECT_EQ(group.waker().calls, 2U * 3U * 5U);
}

TEST(Staged, one_advance_does_one_block) {
  StagedGroup group(2, 4, kSlot);
  TestBatch test = one_tensor(1, OpKind::Broadcast, 2, 3 * kSlot);
  const auto root = group.start(0, test.bound[0]);
  EXPECT_EQ(root->advance().value(), Progress::Working);
  EXPECT_EQ(root->advance().value(), Progress::Working);
  EXPECT_EQ(root->advance().value(), Progress::Done);
}

TEST(Staged, the_context_knows_who_shares_the_arena) {
  StagedGroup group(2, 2, kSlot);
  const std::vector<Rank> here{0, 1};
  const std::vector<Rank> beyond{0, 2};
  EXPECT_TRUE(group.context(0).shares_arena(here));
  EXPECT_FALSE(group.context(0).shares_arena(beyond));
  EXPECT_EQ(group.context(0).local_rank(0), 1);
  EXPECT_EQ(group.context(0).local_rank(7), -1);
}

}  // namespace
}  // namespace ronde::collective
