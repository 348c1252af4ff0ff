// SPDX-License-Identifier: Apache-2.0
// The contract suite of backends: one row each.
#include <gtest/gtest.h>

#include "backend/ring_backend.h"
#include "backend/self_backend.h"
#include "backend/staged_backend.h"
#include "collective/run/test_groups.h"

namespace ronde::backend {
namespace {

using collective::Fill;
using collective::Random;
using collective::TestBatch;

// A backend for each of a group of ranks.
class Host : public collective::TestGroup {
 public:
  std::unique_ptr<collective::Running> start(Rank rank, const BoundBatch& bound) override {
    return backend(rank).start(bound);
  }
  virtual Backend& backend(Rank rank) = 0;
};

class SelfHost final : public Host {
 public:
  explicit SelfHost(int /*ranks*/) {}
  Backend& backend(Rank /*rank*/) override { return backend_; }

 private:
  SelfBackend backend_;
};

class StagedHost final : public Host {
 public:
  explicit StagedHost(int ranks) : group_(ranks, 4, 4096) {
    for (Rank rank = 0; rank < ranks; ++rank)
      backends_.push_back(std::make_unique<StagedBackend>(group_.context(rank)));
  }
  Backend& backend(Rank rank) override { return *backends_[static_cast<size_t>(rank)]; }

 private:
  collective::StagedGroup group_;
  std::vector<std::unique_ptr<StagedBackend>> backends_;
};

class RingHost final : public Host {
 public:
  explicit RingHost(int ranks) : net_(ranks, 300) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      const collective::RingOptions options{.self = rank, .epoch = 3, .segment_bytes = 128};
      backends_.push_back(std::make_unique<RingBackend>(net_.table(rank), options));
    }
  }
  Backend& backend(Rank rank) override { return *backends_[static_cast<size_t>(rank)]; }

 private:
  transport::MemoryNetwork net_;
  std::vector<std::unique_ptr<RingBackend>> backends_;
};

struct Row {
  const char* name;
  std::unique_ptr<Host> (*make)(int ranks);
  int least_members;
  int most_members;
};

template <class T>
std::unique_ptr<Host> make(int ranks) {
  return std::make_unique<T>(ranks);
}

constexpr int kMostMembers = 4;
constexpr Row kRows[] = {{"self", make<SelfHost>, 1, 1},
                         {"staged", make<StagedHost>, 1, kMostMembers},
                         {"ring", make<RingHost>, 2, kMostMembers}};

class Contract : public testing::TestWithParam<Row> {
 protected:
  bool in_range(int members) const { return members >= GetParam().least_members && members <= GetParam().most_members; }
};

INSTANTIATE_TEST_SUITE_P(Backends, Contract, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

Batch batch_of(uint64_t number, OpKind op, DType dtype, int members, Random& random) {
  static constexpr std::array<int64_t, 4> kCounts{7, 0, 1300, 1};
  Batch batch;
  batch.number = number;
  batch.members = collective::first_ranks(members);
  batch.op = op;
  batch.dtype = dtype;
  if (op == OpKind::Broadcast) batch.root = members - 1;
  if (op != OpKind::Barrier) collective::add_tensors(batch, kCounts, random);
  return batch;
}

TEST_P(Contract, tells_its_name_and_what_it_supports) {
  Random random(1);
  for (int members = 1; members <= kMostMembers; ++members) {
    const auto host = GetParam().make(members);
    EXPECT_EQ(host->backend(0).name(), GetParam().name);
    EXPECT_EQ(host->backend(0).supports(batch_of(1, OpKind::Allreduce, DType::F32, members, random)),
              in_range(members));
  }
}

TEST_P(Contract, runs_every_op_on_every_dtype) {
  Random random(2);
  for (int members = 1; members <= kMostMembers; ++members) {
    if (!in_range(members)) continue;
    const auto host = GetParam().make(members);
    std::vector<TestBatch> tests;
    for (const DTypeRow& dtype : kDTypes)
      for (const OpRow& op : kOps)
        for (const bool in_place : {false, true})
          if (!op.changes_sets)
            tests.push_back(collective::make_test_batch(
                batch_of(tests.size() + 1, op.kind, dtype.dtype, members, random), Fill::Small, in_place, random));
    std::vector<TestBatch*> order;
    for (TestBatch& test : tests) order.push_back(&test);
    ASSERT_NO_FATAL_FAILURE(collective::run_interleaved(*host, members, order, random));
    for (const TestBatch& test : tests)
      ASSERT_NO_FATAL_FAILURE(collective::expect_reference(test)) << name_of(test.batch.op) << " of " << members;
  }
}

TEST_P(Contract, applies_every_reduce_op_and_scale) {
  Random random(3);
  for (int members = 1; members <= kMostMembers; ++members) {
    if (!in_range(members)) continue;
    const auto host = GetParam().make(members);
    std::vector<TestBatch> tests;
    for (const ReduceOp reduce : {ReduceOp::Average, ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max, ReduceOp::Product}) {
      for (const double prescale : {1.0, 2.0}) {
        for (const double postscale : {1.0, 0.25}) {
          for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::I32}) {
            Batch batch = batch_of(tests.size() + 1, OpKind::Allreduce, dtype, members, random);
            batch.reduce = reduce;
            batch.prescale = prescale;
            batch.postscale = postscale;
            tests.push_back(collective::make_test_batch(batch, Fill::Small, tests.size() % 2 == 0, random));
          }
        }
      }
    }
    std::vector<TestBatch*> order;
    for (TestBatch& test : tests) order.push_back(&test);
    ASSERT_NO_FATAL_FAILURE(collective::run_interleaved(*host, members, order, random));
    for (const TestBatch& test : tests)
      ASSERT_NO_FATAL_FAILURE(collective::expect_reference(test)) << name_of(test.batch.reduce) << " of " << members;
  }
}

TEST_P(Contract, says_done_again_when_asked_after_the_end) {
  Random random(4);
  const int members = GetParam().least_members;
  const auto host = GetParam().make(members);
  TestBatch test =
      collective::make_test_batch(batch_of(1, OpKind::Barrier, DType::U8, members, random), Fill::Small, false, random);
  std::vector<std::unique_ptr<collective::Running>> running;
  for (Rank rank = 0; rank < members; ++rank)
    running.push_back(host->start(rank, test.bound[static_cast<size_t>(rank)]));
  for (int i = 0; i < 50; ++i)
    for (auto& one : running) ASSERT_TRUE(one->advance().ok());
  for (auto& one : running) EXPECT_EQ(one->advance().value(), collective::Progress::Done);
}

}  // namespace
}  // namespace ronde::backend
