// SPDX-License-Identifier: Apache-2.0
// How many bytes of control a step costs: from the second step on no name and no signature travels.
#include <gtest/gtest.h>

#include "coord/resnet50_shapes.h"
#include "coord/test_cluster.h"

namespace ronde::coord {
namespace {

uint64_t whole_entries(TestCluster& cluster) {
  uint64_t out = 0;
  for (Rank rank = 0; rank < cluster.size(); ++rank) out += cluster.member(rank).whole_entries();
  return out;
}

// Runs `step` several times; after the first one each entry of a report must be small, and nothing be defined.
template <class Step>
void expect_small_from_the_second_step_on(TestCluster& cluster, size_t entries_per_rank, Step step) {
  step(0);
  cluster.run();
  EXPECT_GT(whole_entries(cluster), 0u);
  const uint64_t definitions = cluster.coordinator().counters().definitions;
  const uint64_t whole = whole_entries(cluster);
  for (int i = 1; i < 5; ++i) {
    const size_t before = cluster.report_bytes();
    step(i);
    cluster.run();
    EXPECT_LE(cluster.report_bytes() - before, entries_per_rank * static_cast<size_t>(cluster.size()) * 16);
    EXPECT_GT(cluster.report_bytes(), before);
    for (Rank rank = 0; rank < cluster.size(); ++rank) EXPECT_EQ(cluster.member(rank).in_flight(), 0u);
  }
  EXPECT_EQ(cluster.coordinator().counters().definitions, definitions);
  EXPECT_EQ(whole_entries(cluster), whole);
}

TEST(ReportBytes, named_operations_are_short_from_the_second_step_on) {
  TestCluster cluster(3);
  expect_small_from_the_second_step_on(cluster, 1,
                                       [&](int) { cluster.submit_all(allreduce("a rather long name of a tensor")); });
}

TEST(ReportBytes, unnamed_operations_are_short_from_the_second_step_on) {
  TestCluster cluster(3);
  expect_small_from_the_second_step_on(cluster, 2, [&](int) {
    cluster.submit_all(allreduce(""));
    cluster.submit_all(make_request(OpKind::Barrier, "", DType::F32, Shape{}));
  });
}

TEST(ReportBytes, an_allgather_whose_first_dimension_changes_is_short_from_the_second_step_on) {
  TestCluster cluster(3);
  expect_small_from_the_second_step_on(cluster, 2, [&](int step) {
    for (Rank rank = 0; rank < 3; ++rank) {
      cluster.submit(rank, allgather("g", 1 + 1000 * step + rank));
      cluster.submit(rank, allgather("", 7 + 100'000 * step + rank));
    }
  });
}

TEST(ReportBytes, a_rank_that_is_late_in_the_first_step_sends_nothing_whole_at_all) {
  TestCluster cluster(2);
  cluster.submit(0, allreduce("x"));
  cluster.run();
  cluster.submit(1, allreduce("x"));
  cluster.run();
  EXPECT_EQ(cluster.member(0).whole_entries(), 1u);
  EXPECT_EQ(cluster.member(1).whole_entries(), 0u);
}

TEST(ReportBytes, a_new_name_with_a_known_signature_sends_the_name_only) {
  TestCluster cluster(2);
  cluster.submit_all(allreduce("x", Shape{1000, 1000, 1000}));
  cluster.run();
  const size_t before = cluster.report_bytes();
  cluster.submit(0, allreduce("y", Shape{1000, 1000, 1000}));
  cluster.run();
  EXPECT_EQ(cluster.report_bytes() - before, 1 + 1 + 4 + 1 + 1u);
}

TEST(ReportBytes, the_gradients_of_resnet50_take_few_bytes_each_way) {
  TestCluster cluster(4);
  const auto parameters = resnet50_parameters();
  const auto step = [&] {
    for (Rank rank = 0; rank < 4; ++rank) {
      for (const auto& [name, shape] : parameters) cluster.submit(rank, allreduce(name, shape), true);
      cluster.member(rank).flush();
    }
    cluster.run();
  };
  step();
  const size_t reports = cluster.report_bytes();
  const size_t decisions = cluster.decision_bytes();
  step();
  EXPECT_LE(cluster.report_bytes() - reports, 4 * 161 * 16u);
  EXPECT_LE(cluster.report_bytes() - reports, 4 * 1024u);
  EXPECT_LE(cluster.decision_bytes() - decisions, 2000u);
  EXPECT_EQ(cluster.batches(3).size(), 2u);
}

}  // namespace
}  // namespace ronde::coord
