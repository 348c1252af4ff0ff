// SPDX-License-Identifier: Apache-2.0
// Process sets: all ranks agree on a change; operations of a set concern its members alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coord/codec.h"
#include "coord/test_cluster.h"

namespace ronde::coord {
namespace {

using testing::HasSubstr;

constexpr const char* kChange = "ronde.process_sets";

Request add(std::vector<Rank> ranks) {
  return make_set_request(OpKind::AddSet, std::move(ranks));
}
Request remove_set(SetId id) {
  return make_set_request(OpKind::RemoveSet, {static_cast<int32_t>(id)});
}
Request in_set(SetId set, std::string name) {
  return make_request(OpKind::Allreduce, std::move(name), DType::F32, Shape{4}, ReduceOp::Sum, 0, 1.0, 1.0, set);
}
void add_everywhere(TestCluster& cluster, std::vector<Rank> ranks) {
  cluster.submit_all(add(std::move(ranks)));
  cluster.run();
  for (Rank rank = 0; rank < cluster.size(); ++rank) EXPECT_EQ(cluster.outcome(rank), kChange);
}

TEST(Sets, exist_once_all_ranks_have_added_them) {
  TestCluster cluster(3);
  cluster.submit(0, add({0, 2}));
  cluster.submit(2, add({0, 2}));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "");
  EXPECT_EQ(cluster.try_submit(0, {in_set(1, "x")}, false).code(), Code::InvalidArgument);
  cluster.submit(1, add({0, 2}));
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank), kChange);
  cluster.submit(0, in_set(1, "x"));
  cluster.submit(2, in_set(1, "x"));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "x");
  EXPECT_EQ(cluster.outcome(1), "");
  EXPECT_EQ(cluster.outcome(2), "x");
  EXPECT_EQ(cluster.batches(0).back().members, (std::vector<Rank>{0, 2}));
  EXPECT_TRUE(cluster.batches(1).empty());
}

TEST(Sets, refuse_those_that_are_not_in_them) {
  TestCluster cluster(3);
  add_everywhere(cluster, {0, 2});
  EXPECT_EQ(cluster.try_submit(1, {in_set(1, "x")}, false).code(), Code::InvalidArgument);
}

TEST(Sets, that_differ_between_ranks_are_told_to_all_with_both_sides) {
  TestCluster cluster(3);
  cluster.submit(0, add({0, 2}));
  cluster.submit(1, add({0, 1}));
  cluster.submit(2, add({0, 2}));
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) {
    const Status status = cluster.failure(rank);
    EXPECT_EQ(status.code(), Code::Mismatch);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 asks for add_process_set 0, 2, rank 1 for add_process_set 0, 1"));
  }
  add_everywhere(cluster, {0, 1});
}

TEST(Sets, have_names_and_numbers_of_their_own) {
  TestCluster cluster(3);
  add_everywhere(cluster, {0, 1});
  add_everywhere(cluster, {1, 2});
  cluster.submit_all(allreduce("x"));
  for (const Rank rank : {0, 1}) cluster.submit(rank, in_set(1, "x"));
  for (const Rank rank : {1, 2}) cluster.submit(rank, in_set(2, "x"));
  for (const Rank rank : {1, 2}) cluster.submit(rank, in_set(2, ""));
  cluster.run();
  EXPECT_EQ(cluster.batches(0).size(), 2u);
  EXPECT_EQ(cluster.batches(1).size(), 3u);
  EXPECT_EQ(cluster.batches(2).size(), 2u);
  EXPECT_EQ(cluster.batches(2).back().tensors.size(), 2u);
}

TEST(Sets, that_wait_for_submissions_hold_up_nobody) {
  TestCluster cluster(3);
  add_everywhere(cluster, {0, 1});
  cluster.submit(0, in_set(1, "waits"));
  cluster.submit_all(allreduce("x"));
  cluster.run();
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank), "x");
  cluster.submit(1, in_set(1, "waits"));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), "waits");
}

TEST(Sets, that_are_removed_end_what_is_in_flight_and_take_nothing_more) {
  TestCluster cluster(3);
  add_everywhere(cluster, {0, 1});
  cluster.submit(0, in_set(1, "x"));
  cluster.run();
  cluster.submit_all(remove_set(1));
  cluster.run();
  const std::vector<TestCluster::Told> told = cluster.told(0);
  ASSERT_EQ(told.size(), 2u);
  const TestCluster::Told& failed = told[0].status.ok() ? told[1] : told[0];
  EXPECT_EQ(failed.status.code(), Code::Aborted);
  EXPECT_THAT(failed.status.message(), HasSubstr("allreduce 'x': process set 1 was removed"));
  EXPECT_EQ(cluster.try_submit(0, {in_set(1, "x")}, false).code(), Code::InvalidArgument);
  cluster.submit_all(allreduce("x"));
  cluster.run();
  EXPECT_EQ(cluster.outcome(2), std::string(kChange) + " x");
}

TEST(Sets, answer_a_rank_that_does_not_know_yet_that_they_are_gone) {
  TestCluster cluster(2);
  add_everywhere(cluster, {0, 1});
  cluster.submit_all(remove_set(1));
  cluster.submit(1, in_set(1, "late"));
  cluster.run();
  EXPECT_EQ(cluster.outcome(0), kChange);
  EXPECT_THAT(cluster.failure(1).message(), HasSubstr("process set 1 was removed"));
}

TEST(Sets, get_ids_that_are_never_used_again) {
  TestCluster cluster(2);
  add_everywhere(cluster, {0, 1});
  cluster.submit_all(remove_set(1));
  cluster.run();
  cluster.told(0);
  cluster.submit_all(add({0, 1}));
  cluster.run();
  EXPECT_EQ(cluster.told(0).back().batch, 2u) << "the id";
}

TEST(Sets, end_when_one_of_their_ranks_leaves) {
  TestCluster cluster(3);
  add_everywhere(cluster, {0, 1});
  add_everywhere(cluster, {0, 2});
  cluster.submit(0, in_set(1, "x"));
  cluster.submit(0, in_set(2, "y"));
  cluster.member(1).leave();
  cluster.run();
  EXPECT_THAT(cluster.failure(0).message(), HasSubstr("rank 1 has shut down"));
  cluster.submit(2, in_set(2, "y"));
  cluster.run();
  EXPECT_EQ(cluster.outcome(2), "y");
}

TEST(Sets, that_a_rank_did_not_ask_for_are_no_decision) {
  Member member(0, 2);
  Writer writer;
  encode(writer, DecisionItem(DefineSignature{0, add({0, 1}).signature}));
  encode(writer, DecisionItem(BatchDecision{1, kWorldSet, {BatchEntry{Key{true, 0}, 0, {}}}}));
  const auto events = member.on_decision(writer.bytes());
  ASSERT_FALSE(events.ok());
  EXPECT_THAT(events.status().message(), HasSubstr("add_process_set 0, 1, which this rank did not submit"));
}

TEST(Sets, of_many_ranks_are_told_in_few_bytes) {
  TestCluster cluster(2);
  std::vector<Rank> many;
  for (Rank rank = 0; rank < 2000; ++rank) many.push_back(2 * rank);
  Writer writer;
  encode(writer, DecisionItem(DefineSignature{0, add(many).signature}));
  EXPECT_LT(writer.bytes().size(), 2100u);
  const auto decoded = decode_decision(writer.bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(std::get<DefineSignature>((*decoded)[0]).signature.subject, many);
}

}  // namespace
}  // namespace ronde::coord
