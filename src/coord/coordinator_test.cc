// SPDX-License-Identifier: Apache-2.0
#include "coord/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coord/test_cluster.h"

namespace ronde::coord {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;

TEST(Coordinator, an_operation_runs_once_all_ranks_have_submitted_it) {
  TestCluster cluster(3);
  cluster.submit(0, allreduce("x"));
  cluster.submit(2, allreduce("x"));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "");
  EXPECT_EQ(cluster.member(0).in_flight(), 1u);
  cluster.submit(1, allreduce("x"));
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(cluster.outcome(rank), "x");
    EXPECT_EQ(cluster.member(rank).in_flight(), 0u);
  }
  EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
}

TEST(Coordinator, a_batch_is_self_contained) {
  TestCluster cluster(2);
  const Request request = make_request(OpKind::Allreduce, "x", DType::F64, Shape{2, 3}, ReduceOp::Average, 0, 0.5, 4.0);
  cluster.submit_all(request);
  cluster.run();
  ASSERT_EQ(cluster.batches(1).size(), 1u);
  const Batch& batch = cluster.batches(1)[0];
  EXPECT_EQ(batch.number, 1u);
  EXPECT_EQ(batch.set, kWorldSet);
  EXPECT_EQ(batch.members, (std::vector<Rank>{0, 1}));
  EXPECT_EQ(batch.op, OpKind::Allreduce);
  EXPECT_EQ(batch.dtype, DType::F64);
  EXPECT_EQ(batch.reduce, ReduceOp::Average);
  EXPECT_EQ(batch.prescale, 0.5);
  EXPECT_EQ(batch.postscale, 4.0);
  ASSERT_EQ(batch.tensors.size(), 1u);
  EXPECT_EQ(batch.tensors[0].name, "x");
  EXPECT_EQ(batch.tensors[0].shape, (Shape{2, 3}));
  EXPECT_TRUE(batch.tensors[0].first_dims.empty());
}

TEST(Coordinator, the_root_of_a_broadcast_is_in_its_batch) {
  TestCluster cluster(3);
  cluster.submit_all(make_request(OpKind::Broadcast, "x", DType::U8, Shape{7}, ReduceOp::Sum, 2));
  cluster.run();
  EXPECT_EQ(cluster.batches(0).at(0).op, OpKind::Broadcast);
  EXPECT_EQ(cluster.batches(0).at(0).root, 2);
}

TEST(Coordinator, an_allgather_carries_the_first_dimension_of_every_member) {
  constexpr Rank kRanks = 64;
  TestCluster cluster(kRanks);
  for (Rank rank = kRanks - 1; rank >= 0; --rank) cluster.submit(rank, allgather("g", rank * 1000));
  cluster.run();
  const BatchTensor& tensor = cluster.batches(5).at(0).tensors.at(0);
  ASSERT_EQ(tensor.first_dims.size(), 64u);
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(tensor.first_dims[static_cast<size_t>(rank)], rank * 1000);
  EXPECT_EQ(tensor.shape, (Shape{0, 3}));
}

TEST(Coordinator, all_ranks_hear_the_same_batches_in_the_same_order) {
  TestCluster cluster(3);
  for (Rank rank = 0; rank < 3; ++rank) {
    for (int i = 0; i < 6; ++i) {
      const int at = (i * (rank + 1) + rank) % 7;
      if (at < 6) cluster.submit(rank, allreduce(cat("t", at)));
    }
    cluster.run(rank);
  }
  for (Rank rank = 0; rank < 3; ++rank) {
    for (int i = 0; i < 6; ++i) (void)cluster.try_submit(rank, {allreduce(cat("t", i))});
  }
  cluster.run();
  ASSERT_FALSE(cluster.batches(0).empty());
  for (Rank rank = 1; rank < 3; ++rank) {
    ASSERT_EQ(cluster.batches(rank).size(), cluster.batches(0).size());
    for (size_t b = 0; b < cluster.batches(0).size(); ++b) {
      EXPECT_EQ(cluster.batches(rank)[b].number, b + 1);
      ASSERT_EQ(cluster.batches(rank)[b].tensors.size(), cluster.batches(0)[b].tensors.size());
      for (size_t t = 0; t < cluster.batches(0)[b].tensors.size(); ++t) {
        EXPECT_EQ(cluster.batches(rank)[b].tensors[t].name, cluster.batches(0)[b].tensors[t].name);
      }
    }
  }
}

TEST(Coordinator, unnamed_operations_meet_by_their_running_number) {
  TestCluster cluster(2);
  cluster.submit(0, allreduce("", Shape{1}));
  cluster.submit(0, allreduce("", Shape{2}));
  cluster.submit(0, make_request(OpKind::Barrier, "", DType::F32, Shape{}));
  cluster.run();
  cluster.submit(1, allreduce("", Shape{1}));
  cluster.submit(1, allreduce("", Shape{2}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "#0 #1");
  EXPECT_EQ(cluster.outcome(1), "#0 #1");
  cluster.submit(1, make_request(OpKind::Barrier, "", DType::F32, Shape{}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "#2");
}

TEST(Coordinator, a_single_rank_meets_itself) {
  TestCluster cluster(1);
  cluster.submit(0, allreduce("x"));
  cluster.submit(0, allgather("", 5));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "x #0");
}

TEST(Coordinator, a_mismatch_reaches_those_that_submitted_at_once_and_names_both_sides) {
  TestCluster cluster(4);
  cluster.submit(0, make_request(OpKind::Allreduce, "fc.weight", DType::F32, Shape{10, 20}, ReduceOp::Average));
  cluster.run();
  cluster.submit(3, make_request(OpKind::Allreduce, "fc.weight", DType::F32, Shape{10, 21}, ReduceOp::Average));
  cluster.run();
  for (const Rank rank : {0, 3}) {
    const Status status = cluster.failure(rank);
    EXPECT_EQ(status.code(), Code::Mismatch);
    EXPECT_EQ(
        status.message(),
        "allreduce 'fc.weight': rank 0 asks for allreduce(average) float32[10, 20], rank 3 for allreduce(average) "
        "float32[10, 21]; all ranks must agree on the shape");
  }
  EXPECT_EQ(cluster.outcome(1), "");
  EXPECT_EQ(cluster.outcome(2), "");
}

TEST(Coordinator, a_late_submitter_hears_of_the_mismatch_at_its_submit) {
  TestCluster cluster(3);
  cluster.submit(0, allreduce("x", Shape{1}));
  cluster.submit(1, allreduce("x", Shape{2}));
  cluster.run();
  cluster.submit(2, allreduce("x", Shape{1}));
  cluster.run();
  const Status status = cluster.failure(2);
  EXPECT_EQ(status.code(), Code::Mismatch);
  EXPECT_THAT(status.message(),
              HasSubstr("rank 0 asks for allreduce(sum) float32[1], rank 1 for allreduce(sum) float32[2]"));
}

TEST(Coordinator, after_a_mismatch_the_next_use_of_the_name_is_in_step) {
  TestCluster cluster(3);
  cluster.submit(0, allreduce("x", Shape{1}));
  cluster.submit(1, allreduce("x", Shape{2}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "!x");
  EXPECT_EQ(cluster.outcome(1), "!x");
  // Two ranks go on before the third has submitted the failed one.
  cluster.submit(0, allreduce("x", Shape{5}));
  cluster.submit(1, allreduce("x", Shape{5}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "");
  cluster.submit(2, allreduce("x", Shape{1}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(2), "!x");
  EXPECT_EQ(cluster.outcome(0), "");
  cluster.submit(2, allreduce("x", Shape{5}));
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank), "x");
}

TEST(Coordinator, a_rank_may_be_two_failed_generations_behind) {
  TestCluster cluster(3);
  for (int generation = 0; generation < 2; ++generation) {
    cluster.submit(0, allreduce("x", Shape{1}));
    cluster.submit(1, allreduce("x", Shape{2 + generation}));
    cluster.run();
    EXPECT_EQ(cluster.outcome(0), "!x");
    EXPECT_EQ(cluster.outcome(1), "!x");
  }
  cluster.submit(0, allreduce("x", Shape{7}));
  cluster.submit(1, allreduce("x", Shape{7}));
  cluster.run();
  cluster.submit(2, allreduce("x", Shape{1}));
  cluster.run();
  EXPECT_THAT(cluster.failure(2).message(), HasSubstr("float32[2]"));
  cluster.submit(2, allreduce("x", Shape{1}));
  cluster.run();
  EXPECT_THAT(cluster.failure(2).message(), HasSubstr("float32[3]"));
  cluster.submit(2, allreduce("x", Shape{7}));
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank), "x");
}

TEST(Coordinator, two_ops_under_one_name_meet_and_are_told) {
  TestCluster cluster(2);
  cluster.submit(0, allreduce("x"));
  cluster.submit(1, make_request(OpKind::Broadcast, "x", DType::F32, Shape{4}, ReduceOp::Sum, 1));
  cluster.run();
  EXPECT_EQ(
      cluster.failure(0).message(),
      "allreduce 'x': rank 0 asks for allreduce(sum) float32[4], rank 1 for broadcast float32[4] from rank 1; all "
      "ranks must agree on the operation");
  EXPECT_EQ(cluster.failure(1).code(), Code::Mismatch);
}

TEST(Coordinator, an_unnamed_mismatch_leaves_the_numbers_in_step) {
  TestCluster cluster(2);
  cluster.submit(0, allreduce("", Shape{1}));
  cluster.submit(1, allreduce("", Shape{2}));
  cluster.run();
  EXPECT_THAT(cluster.failure(0).message(), HasSubstr("unnamed allreduce 0: rank 0 asks for"));
  EXPECT_EQ(cluster.outcome(1), "!#0");
  cluster.submit_all(allreduce("", Shape{3}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "#1");
  EXPECT_EQ(cluster.outcome(1), "#1");
}

TEST(Coordinator, other_operations_go_on_beside_a_mismatch) {
  TestCluster cluster(2);
  cluster.submit_all(allreduce("good"));
  cluster.submit(0, allreduce("bad", Shape{1}));
  cluster.submit(1, allreduce("bad", Shape{2}));
  cluster.submit_all(allgather("also good", 2));
  cluster.run();
  for (Rank rank = 0; rank < 2; ++rank) {
    std::string done;
    for (const auto& one : cluster.told(rank)) done += cat(one.status.ok() ? "" : "!", one.name, ";");
    EXPECT_THAT(done, HasSubstr("good;"));
    EXPECT_THAT(done, HasSubstr("also good;"));
    EXPECT_THAT(done, HasSubstr("!bad;"));
  }
}

TEST(Coordinator, a_gathered_tensor_beyond_all_bounds_fails_instead_of_overflowing) {
  TestCluster cluster(2);
  const auto huge = make_request(OpKind::Allgather, "g", DType::U8, Shape{int64_t{1} << 59, 2});
  cluster.submit_all(huge);
  cluster.run();
  EXPECT_EQ(cluster.failure(0).code(), Code::InvalidArgument);
  EXPECT_EQ(cluster.failure(1).code(), Code::InvalidArgument);
}

TEST(Coordinator, a_deadline_names_who_has_not_submitted_and_for_how_long) {
  TestCluster cluster(4, {.collective_timeout = seconds(90)});
  cluster.submit(0, allreduce("x"));
  cluster.submit(2, allreduce("x"));
  cluster.run();
  EXPECT_EQ(cluster.coordinator().next_deadline(), cluster.now() + seconds(90));
  cluster.advance(seconds(89));
  EXPECT_EQ(cluster.outcome(0), "");
  cluster.advance(milliseconds(1250));
  for (const Rank rank : {0, 2}) {
    const Status status = cluster.failure(rank);
    EXPECT_EQ(status.code(), Code::Timeout);
    EXPECT_EQ(status.message(),
              "allreduce 'x': timed out: ranks 1 and 3 have not submitted it for 90.2 s (collective_timeout)");
  }
  EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
  // The late ones hear the same, and the next use works.
  cluster.submit(1, allreduce("x"));
  cluster.submit(3, allreduce("x"));
  cluster.run();
  EXPECT_EQ(cluster.failure(1).code(), Code::Timeout);
  EXPECT_EQ(cluster.failure(3).code(), Code::Timeout);
  cluster.submit_all(allreduce("x"));
  cluster.run();
  for (Rank rank = 0; rank < 4; ++rank) EXPECT_EQ(cluster.outcome(rank), "x");
}

TEST(Coordinator, a_deadline_names_who_has_not_flushed) {
  TestCluster cluster(2, {.collective_timeout = seconds(10)});
  for (int i = 0; i < 1100; ++i) cluster.submit(1, allreduce(cat("t", i)), true);
  cluster.submit(0, allreduce("t0"));
  cluster.run();
  cluster.advance(seconds(10));
  EXPECT_EQ(cluster.failure(0).message(),
            "allreduce 't0': timed out: rank 1 has submitted it with more to follow, and not flushed for 10.0 s "
            "(collective_timeout)");
}

TEST(Coordinator, a_deadline_adds_what_else_is_known_by_then) {
  const Time begin = TestCluster(2).now();
  TestCluster cluster(2, {.collective_timeout = seconds(10), .remark = [&](Time now) {
                            return cat("; rank 1 rests since ", (now - begin) / seconds(1), " s");
                          }});
  cluster.submit(0, allreduce("x"));
  cluster.run();
  cluster.advance(seconds(10));
  EXPECT_THAT(cluster.failure(0).message(), EndsWith("(collective_timeout); rank 1 rests since 10 s"));
}

TEST(Coordinator, a_deadline_without_end_never_comes) {
  TestCluster cluster(2, {.collective_timeout = Duration::max()});
  cluster.submit(0, allreduce("x"));
  cluster.run();
  EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
  cluster.advance(minutes(1'000'000));
  EXPECT_EQ(cluster.outcome(0), "");
}

TEST(Coordinator, each_operation_has_its_own_deadline) {
  TestCluster cluster(2, {.collective_timeout = seconds(10)});
  cluster.submit(0, allreduce("a"));
  cluster.run();
  cluster.advance(seconds(6));
  cluster.submit(0, allreduce("b"));
  cluster.run();
  cluster.advance(seconds(4));
  EXPECT_EQ(cluster.outcome(0), "!a");
  EXPECT_EQ(cluster.coordinator().next_deadline(), cluster.now() + seconds(6));
  cluster.submit(1, allreduce("b"));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "b");
}

}  // namespace
}  // namespace ronde::coord
