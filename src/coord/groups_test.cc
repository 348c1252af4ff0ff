// SPDX-License-Identifier: Apache-2.0
// Groups: several operations of one call are agreed, cut and failed as a whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coord/test_cluster.h"

namespace ronde::coord {
namespace {

using testing::HasSubstr;

std::vector<Request> group(const std::vector<std::string>& names) {
  std::vector<Request> out;
  for (const std::string& name : names) out.push_back(allreduce(name));
  return out;
}

TEST(Groups, run_together_or_not_at_all) {
  TestCluster cluster(2);
  cluster.submit(0, group({"x", "y", "z"}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "");
  cluster.submit(1, group({"x", "y", "z"}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "x y z");
  EXPECT_EQ(cluster.outcome(1), "x y z");
  EXPECT_EQ(cluster.batches(0).size(), 1u);
}

TEST(Groups, of_mixed_dtypes_make_consecutive_batches) {
  TestCluster cluster(2);
  for (Rank rank = 0; rank < 2; ++rank) {
    cluster.submit(rank, std::vector<Request>{allreduce("a"), allreduce("b", Shape{4}, DType::F16), allreduce("c")});
  }
  cluster.run();
  ASSERT_EQ(cluster.batches(0).size(), 2u);
  EXPECT_EQ(cluster.outcome(0), "a c b");
}

TEST(Groups, stay_together_beside_other_operations) {
  TestCluster cluster(2);
  cluster.submit(0, allreduce("before"));
  cluster.submit(0, group({"x", "y"}));
  cluster.submit(0, allreduce("after"));
  cluster.submit(1, allreduce("after"));
  cluster.submit(1, group({"x", "y"}));
  cluster.submit(1, allreduce("before"));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "after x y before");
}

TEST(Groups, with_another_number_of_members_are_a_mismatch_for_all_of_them) {
  TestCluster cluster(3);
  cluster.submit(0, group({"x", "y", "z"}));
  cluster.submit(1, group({"x", "y"}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "!x !y !z");
  const Status status = cluster.failure(1);
  EXPECT_EQ(status.code(), Code::Mismatch);
  EXPECT_EQ(
      status.message(),
      "allreduce 'x': rank 0 submits the group of 3: 'x', 'y' and 'z', rank 1 the group of 2: 'x' and 'y'; all ranks "
      "must group the same operations in the same order");
  EXPECT_EQ(cluster.member(1).in_flight(), 0u);
  EXPECT_EQ(cluster.outcome(2), "");
}

TEST(Groups, after_a_mismatch_of_members_the_next_use_is_in_step) {
  for (const bool third_is_late : {false, true}) {
    TestCluster cluster(3);
    cluster.submit(0, group({"x", "y", "z"}));
    cluster.submit(1, group({"w", "x"}));
    if (!third_is_late) cluster.submit(2, group({"x", "y", "z"}));
    cluster.run();
    EXPECT_EQ(cluster.outcome(0), "!x !y !z");
    EXPECT_EQ(cluster.outcome(1), "!w !x");
    if (third_is_late) {
      cluster.submit(0, group({"x", "y", "z"}));
      cluster.submit(1, group({"x", "y", "z"}));
      cluster.run();
      cluster.submit(2, group({"x", "y", "z"}));
      cluster.run();
      EXPECT_EQ(cluster.outcome(2), "!x !y !z");
      cluster.submit(2, group({"x", "y", "z"}));
    } else {
      EXPECT_EQ(cluster.outcome(2), "!x !y !z");
      for (Rank rank = 0; rank < 3; ++rank) cluster.submit(rank, group({"x", "y", "z"}));
    }
    cluster.run();
    for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank), "x y z");
    // The name that only one of them used is in step too.
    cluster.submit_all(allreduce("w"));
    cluster.run();
    for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank), "w");
    EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
  }
}

TEST(Groups, a_late_group_with_a_name_of_its_own_fails_as_a_whole_and_leaves_no_trace) {
  TestCluster cluster(3);
  cluster.submit(0, group({"x", "y"}));
  cluster.submit(1, group({"y", "x"}));
  cluster.run();
  cluster.submit(2, group({"x", "other"}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(2), "!x !other");
  cluster.submit_all(allreduce("other"));
  for (Rank rank = 0; rank < 3; ++rank) cluster.submit(rank, group({"x", "y"}));
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(cluster.outcome(rank), rank == 0 ? "!x !y other x y" : rank == 1 ? "!y !x other x y" : "other x y");
  }
}

TEST(Groups, that_meet_two_failures_hear_of_the_older_one) {
  TestCluster cluster(3);
  cluster.submit(0, group({"x", "a"}));
  cluster.submit(1, group({"x", "b"}));
  cluster.run();
  cluster.submit(0, group({"x", "y"}));
  cluster.submit(1, group({"y", "x"}));
  cluster.run();
  for (const char* name : {"'a'", "'y'"}) {
    cluster.submit(2, group({"y", "x"}));
    cluster.run();
    EXPECT_THAT(cluster.failure(2).message(), HasSubstr(cat("rank 0 submits the group of 2: 'x' and ", name)));
  }
  for (Rank rank = 0; rank < 3; ++rank) {
    (void)cluster.told(rank);
    cluster.submit(rank, group({"y", "x"}));
  }
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank), "y x");
}

TEST(Groups, in_another_order_are_a_mismatch) {
  TestCluster cluster(2);
  cluster.submit(0, group({"x", "y"}));
  cluster.submit(1, group({"y", "x"}));
  cluster.run();
  EXPECT_THAT(cluster.failure(0).message(), HasSubstr("number 1 is 'x' on rank 0 and 'y' on rank 1"));
  EXPECT_EQ(cluster.outcome(1), "!y !x");
}

TEST(Groups, against_the_same_operations_one_by_one_fail_for_both_and_recover) {
  TestCluster cluster(2);
  cluster.submit(0, group({"x", "y"}));
  cluster.submit(1, allreduce("x"));
  cluster.submit(1, allreduce("y"));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "!x !y");
  EXPECT_EQ(cluster.outcome(1), "!x !y");
  for (Rank rank = 0; rank < 2; ++rank) cluster.submit(rank, group({"x", "y"}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "x y");
  EXPECT_EQ(cluster.outcome(1), "x y");
}

TEST(Groups, against_single_operations_fail_a_third_rank_that_groups_once_only) {
  TestCluster cluster(3);
  cluster.submit(0, allreduce("x"));
  cluster.submit(0, allreduce("y"));
  cluster.submit(1, group({"x", "y"}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "!x !y");
  EXPECT_EQ(cluster.outcome(1), "!x !y");
  cluster.submit(2, group({"x", "y"}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(2), "!x !y");
  cluster.submit_all(allreduce("y"));
  cluster.submit_all(allreduce("x"));
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank), "y x");
}

TEST(Groups, that_overlap_two_groups_fail_both) {
  TestCluster cluster(2);
  cluster.submit(0, group({"a", "b"}));
  cluster.submit(0, group({"c", "d"}));
  cluster.submit(1, group({"b", "c"}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "!a !b !c !d");
  EXPECT_EQ(cluster.outcome(1), "!b !c");
  for (Rank rank = 0; rank < 2; ++rank) cluster.submit(rank, group({"a", "b", "c", "d"}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "a b c d");
}

TEST(Groups, with_one_mismatching_member_fail_as_a_whole_and_name_it) {
  TestCluster cluster(2);
  cluster.submit(0, std::vector<Request>{allreduce("x"), allreduce("y", Shape{5})});
  cluster.submit(1, std::vector<Request>{allreduce("x"), allreduce("y", Shape{6})});
  cluster.run();
  EXPECT_THAT(cluster.failure(0).message(),
              HasSubstr("allreduce 'x': for 'y' of the same group rank 0 asks for allreduce(sum) float32[5], rank 1"));
  EXPECT_EQ(cluster.outcome(1), "!x !y");
}

TEST(Groups, of_unnamed_operations_meet_by_number_and_stay_in_step_after_a_mismatch) {
  TestCluster cluster(2);
  cluster.submit(0, group({"", "", ""}));
  cluster.submit(1, group({"", ""}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "!#0 !#1 !#2");
  EXPECT_EQ(cluster.outcome(1), "!#0 !#1");
  // The third one of rank 1 meets the third one of rank 0, which has failed.
  cluster.submit(1, allreduce(""));
  cluster.run();
  EXPECT_EQ(cluster.outcome(1), "!#2");
  for (Rank rank = 0; rank < 2; ++rank) cluster.submit(rank, group({"", ""}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "#3 #4");
  EXPECT_EQ(cluster.outcome(1), "#3 #4");
}

TEST(Groups, larger_than_a_frame_travel_in_several) {
  TestCluster cluster(2, {.max_frame_bytes = 8192});
  std::vector<std::string> names;
  for (int i = 0; i < 3000; ++i) names.push_back(cat("a fairly long name of a parameter ", i));
  for (int step = 0; step < 2; ++step) {
    for (Rank rank = 0; rank < 2; ++rank) cluster.submit(rank, group(names));
    cluster.run();
    for (Rank rank = 0; rank < 2; ++rank) {
      const auto told = cluster.told(rank);
      ASSERT_EQ(told.size(), names.size());
      for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(told[i].name, names[i]);
      EXPECT_EQ(told.back().batch - told.front().batch + 1,
                cluster.batches(rank).size() / (static_cast<size_t>(step) + 1));
    }
  }
}

TEST(Groups, larger_than_a_frame_fail_as_a_whole) {
  TestCluster cluster(2, {.max_frame_bytes = 8192});
  std::vector<Request> requests;
  for (int i = 0; i < 3000; ++i) requests.push_back(allreduce(cat("parameter ", i)));
  cluster.submit(0, requests);
  requests.back() = allreduce("parameter 2999", Shape{5});
  cluster.submit(1, requests);
  cluster.run();
  for (Rank rank = 0; rank < 2; ++rank) {
    const auto told = cluster.told(rank);
    ASSERT_EQ(told.size(), requests.size());
    for (const auto& one : told) EXPECT_EQ(one.status.code(), Code::Mismatch);
  }
}

}  // namespace
}  // namespace ronde::coord
