// SPDX-License-Identifier: Apache-2.0
// When batches are cut, and how many there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "coord/resnet50_shapes.h"
#include "coord/test_cluster.h"

namespace ronde::coord {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The gradients of a backward pass: last parameter first.
std::vector<Request> gradients() {
  std::vector<Request> out;
  for (const auto& [name, shape] : resnet50_parameters()) out.push_back(allreduce(name, shape));
  std::reverse(out.begin(), out.end());
  return out;
}

TEST(Cutting, resnet50_has_the_shapes_that_the_tests_speak_of) {
  int64_t count = 0;
  for (const auto& [name, shape] : resnet50_parameters()) count += shape.count();
  EXPECT_EQ(resnet50_parameters().size(), 161u);
  EXPECT_EQ(count, 25'557'032);
}

TEST(Cutting, a_tensor_without_more_is_cut_as_soon_as_all_have_it) {
  TestCluster cluster(2);
  for (const char* name : {"a", "b"}) {
    cluster.submit(0, allreduce(name));
    cluster.run();
    cluster.submit(1, allreduce(name));
    cluster.run();
    EXPECT_EQ(cluster.outcome(0), name);
  }
  EXPECT_EQ(cluster.batches(0).size(), 2u);
}

TEST(Cutting, a_member_that_is_not_eager_tells_nothing_before_its_flush) {
  TestCluster cluster(2);
  cluster.submit(0, allreduce("x"), true);
  EXPECT_FALSE(cluster.member(0).has_reports());
  EXPECT_TRUE(cluster.member(0).take_reports().empty());
  cluster.member(0).flush();
  EXPECT_TRUE(cluster.member(0).has_reports());
}

TEST(Cutting, the_wait_of_one_member_does_not_cut_what_another_holds_back) {
  for (const bool cut_early : {false, true}) {
    TestCluster cluster(3, {.cut_early = cut_early});
    cluster.submit(0, allreduce("x"), true);
    cluster.submit(1, allreduce("x"), true);
    cluster.submit(2, allreduce("x"));
    cluster.run();
    cluster.member(0).flush();
    cluster.run();
    EXPECT_EQ(cluster.outcome(2), "");
    cluster.member(1).flush();
    cluster.run();
    for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank), "x");
  }
}

TEST(Cutting, a_submission_without_more_flushes_those_before_it) {
  for (const bool eager : {false, true}) {
    TestCluster cluster(2, {.cut_early = eager, .batch_bytes = 1 << 20});
    for (Rank rank = 0; rank < 2; ++rank) {
      cluster.submit(rank, allreduce("a"), true);
      cluster.submit(rank, allreduce("b"), true);
      cluster.run();
      EXPECT_EQ(cluster.outcome(rank), "");
      cluster.submit(rank, allreduce("c"));
    }
    cluster.run();
    EXPECT_EQ(cluster.outcome(0), "a b c");
    EXPECT_EQ(cluster.batches(0).size(), 1u);
  }
}

TEST(Cutting, a_flush_that_crosses_a_submission_of_another_rank_releases_only_its_own) {
  TestCluster cluster(2, {.cut_early = true});
  cluster.submit(0, allreduce("a"), true);
  cluster.submit(0, allreduce("b"), true);
  cluster.submit(1, allreduce("a"), true);
  cluster.submit(1, allreduce("b"), true);
  cluster.run();
  cluster.member(0).flush();
  cluster.submit(1, allreduce("c"));  // flushes rank 1
  cluster.submit(0, allreduce("c"), true);
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "a b");
  EXPECT_EQ(cluster.outcome(1), "a b");
  cluster.member(0).flush();
  cluster.run();
  EXPECT_EQ(cluster.outcome(1), "c");
}

TEST(Cutting, operations_that_do_not_fit_together_make_batches_of_their_own) {
  TestCluster cluster(2);
  for (Rank rank = 0; rank < 2; ++rank) {
    cluster.submit(rank, allreduce("a"), true);
    cluster.submit(rank, allreduce("half", Shape{4}, DType::F16), true);
    cluster.submit(rank, make_request(OpKind::Allreduce, "max", DType::F32, Shape{4}, ReduceOp::Max), true);
    cluster.submit(rank, make_request(OpKind::Allreduce, "scaled", DType::F32, Shape{4}, ReduceOp::Sum, 0, 0.5), true);
    cluster.submit(rank, make_request(OpKind::Broadcast, "from 0", DType::F32, Shape{4}, ReduceOp::Sum, 0), true);
    cluster.submit(rank, make_request(OpKind::Broadcast, "from 1", DType::F32, Shape{4}, ReduceOp::Sum, 1), true);
    cluster.submit(rank, allgather("g", 3), true);
    cluster.submit(rank, allreduce("b", Shape{9, 9}), true);
    cluster.member(rank).flush();
  }
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "a b half max scaled from 0 from 1 g");
  EXPECT_EQ(cluster.batches(0).size(), 7u);
}

TEST(Cutting, the_gradients_of_resnet50_make_one_batch_on_one_host) {
  TestCluster cluster(4);
  for (int step = 0; step < 3; ++step) {
    for (Rank rank = 0; rank < 4; ++rank) {
      for (const Request& request : gradients()) cluster.submit(rank, request, true);
      cluster.member(rank).flush();
      cluster.run(rank);
    }
    for (Rank rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(cluster.told(rank).size(), 161u);
      EXPECT_EQ(cluster.batches(rank).size(), static_cast<size_t>(step + 1));
    }
  }
}

// A step under a model of time: each rank submits its gradients in its own order and at its own pace, and flushes at
// the end.
struct Pace {
  Duration per_tensor;
  bool shuffled = false;
};

size_t batches_of_a_step(const std::vector<Pace>& paces, uint64_t seed) {
  TestCluster cluster(static_cast<Rank>(paces.size()), {.cut_early = true});
  std::mt19937_64 random(seed);
  std::vector<std::vector<Request>> orders;
  for (const Pace& pace : paces) {
    orders.push_back(gradients());
    if (pace.shuffled) std::shuffle(orders.back().begin(), orders.back().end(), random);
  }
  std::vector<size_t> next(paces.size());
  std::vector<bool> flushed(paces.size());
  constexpr Duration kTick = microseconds(250);
  for (Duration time{}; time < seconds(60); time += kTick) {
    for (size_t r = 0; r < paces.size(); ++r) {
      const auto rank = static_cast<Rank>(r);
      while (next[r] < orders[r].size() && paces[r].per_tensor * static_cast<int64_t>(next[r] + 1) <= time) {
        cluster.submit(rank, orders[r][next[r]++], true);
      }
      if (next[r] == orders[r].size() && !flushed[r]) {
        cluster.member(rank).flush();
        flushed[r] = true;
      }
    }
    cluster.run();
    cluster.advance(kTick);
    if (std::all_of(flushed.begin(), flushed.end(), [](bool is) { return is; })) break;
  }
  for (Rank rank = 0; rank < cluster.size(); ++rank) EXPECT_EQ(cluster.told(rank).size(), 161u);
  return cluster.batches(0).size();
}

TEST(Cutting, the_gradients_of_resnet50_make_at_most_20_batches_also_when_one_rank_is_slower) {
  EXPECT_LE(batches_of_a_step({{microseconds(100)}, {microseconds(100)}}, 1), 20u);
  EXPECT_LE(batches_of_a_step({{microseconds(500)}, {milliseconds(2)}}, 2), 20u);
  EXPECT_LE(batches_of_a_step({{microseconds(100)}, {milliseconds(20)}}, 3), 20u);
  EXPECT_LE(batches_of_a_step({{milliseconds(3)}, {milliseconds(3)}, {milliseconds(3)}, {milliseconds(9)}}, 4), 20u);
  EXPECT_LE(batches_of_a_step({{milliseconds(7)}, {milliseconds(7)}}, 5), 20u);
  EXPECT_LE(batches_of_a_step({{microseconds(300), true}, {milliseconds(2), true}, {microseconds(700), true}}, 6), 20u);
}

TEST(Cutting, with_cut_early_communication_begins_before_the_flush) {
  TestCluster cluster(2, {.cut_early = true});
  const auto requests = gradients();
  for (size_t i = 0; i < 80; ++i) {
    cluster.submit_all(requests[i], true);
    cluster.run();
  }
  EXPECT_GT(cluster.batches(0).size(), 2u);
  EXPECT_LT(cluster.batches(0).size(), 20u);
}

TEST(Cutting, a_hold_ends_by_time) {
  TestCluster cluster(2, {.cut_early = true, .hold = milliseconds(5)});
  cluster.submit_all(allreduce("x"), true);
  cluster.run();
  EXPECT_EQ(cluster.coordinator().next_deadline(), cluster.now() + milliseconds(5));
  cluster.advance(milliseconds(4));
  EXPECT_EQ(cluster.outcome(0), "");
  cluster.advance(milliseconds(1));
  EXPECT_EQ(cluster.outcome(0), "x");
  // The flush that comes after has nothing to release.
  for (Rank rank = 0; rank < 2; ++rank) cluster.member(rank).flush();
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "");
  EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
}

TEST(Cutting, a_hold_counts_from_when_all_ranks_were_ready) {
  TestCluster cluster(2, {.cut_early = true, .hold = milliseconds(5)});
  cluster.submit(0, allreduce("x"), true);
  cluster.run();
  cluster.advance(seconds(1));
  cluster.submit(1, allreduce("x"), true);
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "");
  cluster.advance(milliseconds(5));
  EXPECT_EQ(cluster.outcome(0), "x");
}

TEST(Cutting, without_cut_early_neither_time_nor_bytes_cut) {
  TestCluster cluster(2, {.cut_early = false, .batch_bytes = 1, .hold = milliseconds(1)});
  // So many that members tell them before the flush.
  for (int i = 0; i < 1500; ++i) cluster.submit_all(allreduce(cat("t", i)), true);
  cluster.run();
  cluster.advance(seconds(1));
  EXPECT_EQ(cluster.outcome(0), "");
  for (Rank rank = 0; rank < 2; ++rank) cluster.member(rank).flush();
  cluster.run();
  EXPECT_EQ(cluster.told(0).size(), 1500u);
  EXPECT_EQ(cluster.batches(0).size(), 1u);
}

TEST(Cutting, ten_thousand_tensors_keep_within_the_frames) {
  TestCluster cluster(3, {.max_frame_bytes = 16 * 1024});
  for (int step = 0; step < 2; ++step) {
    for (Rank rank = 0; rank < 3; ++rank) {
      for (int i = 0; i < 10'000; ++i)
        cluster.submit(rank, allreduce(cat("tensor ", (i * 7919 + rank) % 10'000)), true);
      cluster.member(rank).flush();
      for (const Bytes& frame : cluster.member(rank).take_reports()) {
        ASSERT_LE(frame.size(), 16u * 1024);
        ASSERT_TRUE(cluster.coordinator().on_report(rank, frame, cluster.now()).ok());
      }
    }
    cluster.run();
    for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.told(rank).size(), 10'000u);
    EXPECT_LE(cluster.batches(0).size(), 4u * static_cast<size_t>(step + 1));
  }
}

TEST(Cutting, first_dimensions_that_fit_into_no_frame_fail_the_operation) {
  constexpr Rank kRanks = 1200;
  TestCluster cluster(kRanks, {.max_frame_bytes = 8192});
  for (Rank rank = 0; rank < kRanks; ++rank) cluster.submit(rank, allgather("g", int64_t{1} << 43));
  cluster.run();
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(cluster.failure(rank).code(), Code::ResourceExhausted);
  for (Rank rank = 0; rank < kRanks; ++rank) cluster.submit(rank, allgather("g", 1000));
  cluster.run();
  EXPECT_EQ(cluster.outcome(7), "g");
}

}  // namespace
}  // namespace ronde::coord
