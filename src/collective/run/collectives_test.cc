// SPDX-License-Identifier: Apache-2.0
// Both data paths against one reference: every op, dtype and group size, in random interleavings.
#include <gtest/gtest.h>

#include <array>

#include "collective/run/test_groups.h"

namespace ronde::collective {
namespace {

constexpr std::array kGroupSizes{1, 2, 3, 4, 5, 8};
constexpr std::array kReduceOps{ReduceOp::Average, ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max, ReduceOp::Product};
constexpr size_t kSmallSlot = 4096;
constexpr size_t kTinySegment = 64;

struct Path {
  const char* name;
  std::unique_ptr<TestGroup> (*make)(int ranks);
};

std::unique_ptr<TestGroup> small_slots(int ranks) {
  return std::make_unique<StagedGroup>(ranks, 2, kSmallSlot);
}
std::unique_ptr<TestGroup> more_slots(int ranks) {
  return std::make_unique<StagedGroup>(ranks, 5, 2 * kSmallSlot);
}
std::unique_ptr<TestGroup> tiny_segments(int ranks) {
  return std::make_unique<RingGroup>(ranks, kTinySegment);
}
std::unique_ptr<TestGroup> slow_links(int ranks) {
  return std::make_unique<RingGroup>(ranks, 96, 37);
}
std::unique_ptr<TestGroup> torn_frames(int ranks) {
  return std::make_unique<FramedGroup>(ranks, 200, 150);
}

class Paths : public testing::TestWithParam<Path> {
 protected:
  std::unique_ptr<TestGroup> group(int ranks) const { return GetParam().make(ranks); }
};

INSTANTIATE_TEST_SUITE_P(All, Paths,
                         testing::Values(Path{"small_slots", small_slots}, Path{"more_slots", more_slots},
                                         Path{"tiny_segments", tiny_segments}, Path{"slow_links", slow_links},
                                         Path{"torn_frames", torn_frames}),
                         [](const auto& path) { return std::string(path.param.name); });

// Tensors of a batch that is larger than a slot, with what is easily forgotten: none, one, fewer elements than members.
constexpr std::array<int64_t, 7> kMixed{3, 0, 300, 1, 17, 1031, 0};
constexpr std::array<int64_t, 3> kFew{5, 0, 2};

Batch make_batch(uint64_t number, OpKind op, DType dtype, std::vector<Rank> members) {
  Batch batch;
  batch.number = number;
  batch.members = std::move(members);
  batch.op = op;
  batch.dtype = dtype;
  return batch;
}

void expect_reductions(const Path& path, OpKind op) {
  Random random(1);
  for (const int ranks : kGroupSizes) {
    const auto ranks_group = path.make(ranks);
    uint64_t number = 0;
    std::vector<TestBatch> tests;
    for (const DTypeRow& dtype : kDTypes) {
      for (const ReduceOp reduce : kReduceOps) {
        if (!is_possible(reduce, dtype.dtype)) continue;
        Batch batch = make_batch(++number, op, dtype.dtype, first_ranks(ranks));
        batch.reduce = reduce;
        batch.prescale = number % 3 == 0 ? 2.0 : 1.0;
        batch.postscale = number % 4 == 0 ? 0.75 : 1.0;
        add_tensors(batch, number % 2 == 0 ? std::span<const int64_t>(kMixed) : kFew, random);
        tests.push_back(make_test_batch(batch, Fill::Small, number % 5 < 2, random));
      }
    }
    std::vector<TestBatch*> order;
    for (TestBatch& test : tests) order.push_back(&test);
    ASSERT_NO_FATAL_FAILURE(run_interleaved(*ranks_group, ranks, order, random));
    for (const TestBatch& test : tests) {
      ASSERT_NO_FATAL_FAILURE(expect_reference(test)) << ranks << " ranks, " << name_of(test.batch.dtype);
    }
  }
}

TEST_P(Paths, allreduce_gives_the_reference_for_every_op_and_dtype) {
  expect_reductions(GetParam(), OpKind::Allreduce);
}

TEST_P(Paths, reducescatter_gives_the_reference_for_every_op_and_dtype) {
  expect_reductions(GetParam(), OpKind::Reducescatter);
}

TEST_P(Paths, ops_that_only_move_give_the_reference_for_every_root_and_dtype) {
  Random random(2);
  for (const int ranks : kGroupSizes) {
    const auto ranks_group = group(ranks);
    uint64_t number = 0;
    std::vector<TestBatch> tests;
    for (int dtype = 0; dtype <= static_cast<int>(kLastDType); ++dtype) {
      for (int root = dtype % 2; root < ranks; root += 2) {
        for (const OpKind op : {OpKind::Broadcast, OpKind::Allgather, OpKind::Alltoall, OpKind::Barrier}) {
          Batch batch = make_batch(++number, op, static_cast<DType>(dtype), first_ranks(ranks));
          batch.root = op == OpKind::Broadcast ? root : 0;
          if (op != OpKind::Barrier)
            add_tensors(batch, root % 2 == 0 ? std::span<const int64_t>(kMixed) : kFew, random);
          tests.push_back(make_test_batch(batch, Fill::Wild, root % 3 == 0, random));
        }
      }
    }
    std::vector<TestBatch*> order;
    for (TestBatch& test : tests) order.push_back(&test);
    ASSERT_NO_FATAL_FAILURE(run_interleaved(*ranks_group, ranks, order, random));
    for (const TestBatch& test : tests) {
      ASSERT_NO_FATAL_FAILURE(expect_reference(test)) << ranks << " ranks, " << name_of(test.batch.op);
    }
  }
}

// A batch over a random subset of the ranks.
TestBatch random_batch(uint64_t number, int ranks, Random& random) {
  std::vector<Rank> members;
  while (members.empty())
    for (Rank rank = 0; rank < ranks; ++rank)
      if (uniform(random, 0, 2) > 0) members.push_back(rank);
  const auto op = static_cast<OpKind>(uniform(random, 0, static_cast<int>(OpKind::Alltoall)));
  const auto dtype = static_cast<DType>(uniform(random, 0, static_cast<int>(kLastDType)));
  Batch batch = make_batch(number, op, dtype, members);
  if (op == OpKind::Broadcast)
    batch.root = members[static_cast<size_t>(uniform(random, 0, static_cast<int>(members.size()) - 1))];
  if (row(op).reduces) {
    do {
      batch.reduce = kReduceOps[static_cast<size_t>(uniform(random, 0, 4))];
    } while (!is_possible(batch.reduce, dtype));
    batch.prescale = uniform(random, 0, 3) == 0 ? 0.5 : 1.0;
  }
  std::vector<int64_t> counts;
  for (int tensors = uniform(random, 1, 5); op != OpKind::Barrier && tensors > 0; --tensors)
    counts.push_back(uniform(random, 0, 2) == 0 ? uniform(random, 0, 9) : uniform(random, 0, 1200));
  add_tensors(batch, counts, random);
  return make_test_batch(batch, Fill::Small, uniform(random, 0, 1) == 0, random);
}

TEST_P(Paths, run_batches_of_many_sets_one_after_another_in_any_interleaving) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Random random(100 + seed);
    const int ranks = uniform(random, 2, 6);
    const auto ranks_group = group(ranks);
    std::vector<TestBatch> tests;
    for (uint64_t number = 1; number <= 25; ++number)
      tests.push_back(random_batch(number + (number > 12 ? 1000 : 0), ranks, random));
    std::vector<TestBatch*> order;
    for (TestBatch& test : tests) order.push_back(&test);
    ASSERT_NO_FATAL_FAILURE(run_interleaved(*ranks_group, ranks, order, random)) << "seed " << seed;
    for (const TestBatch& test : tests) ASSERT_NO_FATAL_FAILURE(expect_reference(test)) << "seed " << seed;
  }
}

TEST_P(Paths, run_the_same_in_a_thread_for_each_rank) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Random random(200 + seed);
    const int ranks = uniform(random, 2, 4);
    const auto ranks_group = group(ranks);
    std::vector<TestBatch> tests;
    for (uint64_t number = 1; number <= 12; ++number) tests.push_back(random_batch(number, ranks, random));
    std::vector<TestBatch*> order;
    for (TestBatch& test : tests) order.push_back(&test);
    run_threads(*ranks_group, ranks, order);
    for (const TestBatch& test : tests) ASSERT_NO_FATAL_FAILURE(expect_reference(test)) << "seed " << seed;
  }
}

// Arithmetic does not depend on fusion, nor on who is fast.
TEST_P(Paths, fused_gives_bit_for_bit_what_the_tensors_give_one_by_one) {
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    for (const int ranks : {2, 3, 5}) {
      Random random(300 + static_cast<uint64_t>(ranks));
      Batch batch = make_batch(1, OpKind::Allreduce, dtype, first_ranks(ranks));
      batch.reduce = ReduceOp::Average;
      batch.prescale = ranks == 3 ? 0.3 : 1.0;
      batch.postscale = 1.7;
      add_tensors(batch, kMixed, random);
      TestBatch fused = make_test_batch(batch, Fill::Wild, false, random);
      std::vector<TestBatch> singles;
      for (size_t t = 0; t < batch.tensors.size(); ++t) {
        Batch alone = batch;
        alone.number = 2 + t;
        alone.tensors = {batch.tensors[t]};
        singles.push_back(make_test_batch(alone, Fill::Small, true, random));
        for (size_t m = 0; m < batch.members.size(); ++m)
          std::ranges::copy(fused.originals[m][t], singles[t].inputs[m][0].begin());
      }
      std::vector<TestBatch*> order{&fused};
      for (TestBatch& test : singles) order.push_back(&test);
      const auto ranks_group = group(ranks);
      ASSERT_NO_FATAL_FAILURE(run_interleaved(*ranks_group, ranks, order, random));
      ASSERT_NO_FATAL_FAILURE(expect_members_equal(fused));
      for (size_t t = 0; t < batch.tensors.size(); ++t)
        ASSERT_EQ(fused.result(0, t), singles[t].result(0, 0)) << name_of(dtype) << ", tensor " << t;
    }
  }
}

TEST_P(Paths, barrier_ends_for_nobody_before_the_last_has_begun) {
  for (const int ranks : {2, 3, 5}) {
    Random random(4);
    const auto ranks_group = group(ranks);
    TestBatch barrier =
        make_test_batch(make_batch(1, OpKind::Barrier, DType::U8, first_ranks(ranks)), Fill::Small, false, random);
    std::vector<std::unique_ptr<Running>> running;
    for (Rank rank = 0; rank < ranks; ++rank)
      running.push_back(ranks_group->start(rank, barrier.bound[static_cast<size_t>(rank)]));
    for (int rounds = 0; rounds < 50; ++rounds)
      for (int rank = 0; rank < ranks - 1; ++rank)
        ASSERT_NE(running[static_cast<size_t>(rank)]->advance().value(), Progress::Done);
    std::vector<bool> done(running.size(), false);
    for (int rounds = 0; rounds < 50; ++rounds)
      for (size_t i = 0; i < running.size(); ++i) done[i] = done[i] || running[i]->advance().value() == Progress::Done;
    EXPECT_EQ(std::ranges::count(done, true), ranks);
  }
}

}  // namespace
}  // namespace ronde::collective
