// SPDX-License-Identifier: Apache-2.0
// Ranks that shut down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coord/test_cluster.h"

namespace ronde::coord {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Leave, is_a_point_in_the_order_that_every_rank_hears) {
  TestCluster cluster(3);
  cluster.submit_all(allreduce("x"));
  cluster.member(1).leave();
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(cluster.outcome(rank), "!x");
    EXPECT_THAT(cluster.lefts(rank), ElementsAre(1));
  }
}

TEST(Leave, what_all_had_submitted_before_it_still_runs) {
  TestCluster cluster(3);
  cluster.submit(0, allreduce("x"));
  cluster.submit(2, allreduce("x"));
  cluster.run();
  cluster.submit(1, allreduce("x"));
  cluster.member(1).leave();
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(cluster.outcome(rank), "x");
    EXPECT_THAT(cluster.lefts(rank), ElementsAre(1));
  }
}

TEST(Leave, fails_what_others_wait_for_and_what_they_submit_later_naming_the_rank) {
  TestCluster cluster(3);
  cluster.submit(0, allreduce("x"));
  cluster.submit(0, make_request(OpKind::Barrier, "", DType::F32, Shape{}));
  cluster.run();
  cluster.member(1).leave();
  cluster.run();
  const auto told = cluster.told(0);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].status.code(), Code::RankLeft);
  EXPECT_EQ(told[0].status.message(), "allreduce 'x': rank 1 has shut down, and this operation needs it");
  EXPECT_EQ(told[1].status.message(), "unnamed barrier 0: rank 1 has shut down, and this operation needs it");
  cluster.submit(2, allreduce("x"));
  cluster.submit(0, allreduce("new"));
  cluster.run();
  EXPECT_EQ(cluster.failure(2).code(), Code::RankLeft);
  EXPECT_THAT(cluster.failure(0).message(), HasSubstr("allreduce 'new': rank 1 has shut down"));
  EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
}

TEST(Leave, fails_the_pending_operations_of_the_leaver_on_its_own_side) {
  TestCluster cluster(2);
  cluster.submit(1, allreduce("x"));
  cluster.submit(1, allreduce("held"), true);
  cluster.run();
  cluster.member(1).leave();
  EXPECT_EQ(cluster.try_submit(1, {allreduce("y")}).code(), Code::NotInitialized);
  cluster.run();
  const auto told = cluster.told(1);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].status.code(), Code::RankLeft);
  EXPECT_EQ(told[1].status.code(), Code::RankLeft);
  EXPECT_EQ(cluster.member(1).in_flight(), 0u);
  EXPECT_THAT(cluster.lefts(1), ElementsAre(1));
}

TEST(Leave, meets_reports_of_others_that_are_on_their_way) {
  TestCluster cluster(3);
  cluster.submit(0, allreduce("x"));
  cluster.submit(2, std::vector<Request>{allreduce("x"), allreduce("y")});
  cluster.submit(2, allreduce("z"), true);
  cluster.send(0);
  cluster.send(2);
  cluster.member(1).leave();
  cluster.run(1);
  EXPECT_EQ(cluster.outcome(0), "");
  cluster.member(2).flush();
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "!x");
  EXPECT_EQ(cluster.outcome(2), "!x !y !z");
}

TEST(Leave, of_all_ranks_one_after_the_other_is_quiet) {
  TestCluster cluster(3);
  cluster.submit_all(allreduce("x"));
  cluster.run();
  for (const Rank rank : {2, 0, 1}) {
    cluster.member(rank).leave();
    cluster.member(rank).leave();
    cluster.run(rank);
  }
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(cluster.outcome(rank), "x");
    EXPECT_THAT(cluster.lefts(rank), ElementsAre(2, 0, 1));
  }
}

TEST(Leave, with_thousands_of_pending_operations_takes_few_bytes) {
  TestCluster cluster(3);
  for (int i = 0; i < 5000; ++i) {
    cluster.submit(0, allreduce(cat("t", i)));
    cluster.submit(2, allreduce(cat("t", i)));
  }
  cluster.run();
  cluster.member(1).leave();
  const size_t before = cluster.decision_bytes();
  cluster.run();
  EXPECT_EQ(cluster.told(0).size(), 5000u);
  EXPECT_EQ(cluster.told(2).size(), 5000u);
  EXPECT_LT(cluster.decision_bytes() - before, 20'000u);
}

TEST(Leave, is_the_end_of_a_rank_s_reports) {
  TestCluster cluster(2);
  cluster.member(1).leave();
  const auto frames = cluster.member(1).take_reports();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_TRUE(cluster.coordinator().on_report(1, frames[0], cluster.now()).ok());
  const Status status = cluster.coordinator().on_report(1, frames[0], cluster.now());
  EXPECT_EQ(status.code(), Code::Internal);
  EXPECT_THAT(status.message(), HasSubstr("report of rank 1"));
}

TEST(Leave, forgets_the_generations_of_failed_operations) {
  TestCluster cluster(3);
  cluster.submit(0, allreduce("x", Shape{1}));
  cluster.submit(2, allreduce("x", Shape{2}));
  cluster.run();
  cluster.member(1).leave();
  cluster.submit(0, allreduce("x", Shape{1}));
  cluster.run();
  const auto told = cluster.told(0);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].status.code(), Code::Mismatch);
  EXPECT_EQ(told[1].status.code(), Code::RankLeft);
}

}  // namespace
}  // namespace ronde::coord
