// SPDX-License-Identifier: Apache-2.0
// What a rank decides by itself.
#include "coord/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "coord/codec.h"
#include "coord/test_cluster.h"

namespace ronde::coord {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Status submit_one(Member& member, const Request& request, Ticket ticket, bool more = false) {
  return member.submit(std::span(&request, 1), std::span(&ticket, 1), more);
}

Status submit_two(Member& member, const Request& a, const Request& b) {
  const std::vector<Request> requests{a, b};
  const std::vector<Ticket> tickets{101, 102};
  return member.submit(requests, tickets, false);
}

std::vector<ReportItem> items_of(Member& member) {
  std::vector<ReportItem> out;
  for (const Bytes& frame : member.take_reports()) {
    const auto items = decode_report(frame);
    EXPECT_TRUE(items.ok());
    out.insert(out.end(), items->begin(), items->end());
  }
  return out;
}

Bytes frame_of(const std::vector<DecisionItem>& items) {
  Writer out;
  for (const DecisionItem& item : items) encode(out, item);
  return out.take();
}

TEST(Member, a_name_in_flight_is_refused) {
  Member member(0, 2);
  EXPECT_TRUE(submit_one(member, allreduce("x"), 1).ok());
  const Status status = submit_one(member, allreduce("x"), 2);
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  EXPECT_EQ(
      status.message(),
      "allreduce 'x': an operation with this name is still in flight on this rank; wait for it or use another name");
  EXPECT_EQ(member.in_flight(), 1u);
}

TEST(Member, a_refused_group_leaves_nothing_submitted) {
  Member member(0, 2);
  EXPECT_TRUE(submit_one(member, allreduce("y"), 1).ok());
  (void)member.take_reports();
  EXPECT_EQ(submit_two(member, allreduce("x"), allreduce("y")).code(), Code::InvalidArgument);
  EXPECT_FALSE(member.has_reports());
  EXPECT_EQ(member.in_flight(), 1u);
  EXPECT_TRUE(submit_one(member, allreduce("x"), 2).ok());
}

TEST(Member, a_name_twice_in_one_group_is_refused) {
  Member member(0, 2);
  EXPECT_THAT(submit_two(member, allreduce("x"), allreduce("x")).message(), HasSubstr("twice in one group"));
  EXPECT_TRUE(submit_two(member, allreduce(""), allreduce("")).ok());
}

TEST(Member, refuses_what_no_rank_could_run) {
  Member member(0, 4);
  const auto refusal = [&](const Request& request) {
    const Status status = submit_one(member, request, 9);
    EXPECT_EQ(status.code(), Code::InvalidArgument);
    EXPECT_EQ(member.in_flight(), 0u);
    return status.message();
  };
  EXPECT_EQ(refusal(make_request(OpKind::Broadcast, "x", DType::F32, Shape{1}, ReduceOp::Sum, 4)),
            "broadcast 'x': root rank 4 is not one of the 4 ranks (0 to 3)");
  EXPECT_THAT(refusal(make_request(OpKind::Broadcast, "x", DType::F32, Shape{1}, ReduceOp::Sum, -1)), HasSubstr("-1"));
  EXPECT_THAT(refusal(allreduce("x", Shape{-1})), HasSubstr("[-1]"));
  EXPECT_THAT(refusal(allreduce("x", Shape{int64_t{1} << 62, 8})), HasSubstr("2^60"));
  EXPECT_THAT(refusal(allgather("x", -3)), HasSubstr("-3"));
  EXPECT_THAT(refusal(allreduce(std::string(kMaxNameBytes + 1, 'n'))), HasSubstr("4097 bytes"));
  EXPECT_THAT(refusal(make_request(OpKind::Allreduce, "x", DType::F32, Shape{1}, ReduceOp::Sum, 0, 0.0 / 0.0)),
              HasSubstr("finite"));
  EXPECT_THAT(refusal(make_request(OpKind::Barrier, "", DType::F32, Shape{}, ReduceOp::Sum, 0, 1.0, 1.0, 3)),
              HasSubstr("process set 3"));
  EXPECT_TRUE(submit_one(member, allreduce(std::string(kMaxNameBytes, 'n')), 9).ok());
}

TEST(Member, a_group_lies_in_one_set) {
  Member member(0, 2);
  Request other = allreduce("y");
  other.set = 5;
  EXPECT_THAT(submit_two(member, allreduce("x"), other).message(), HasSubstr("two process sets"));
}

TEST(Member, nothing_to_submit_is_nothing) {
  Member member(0, 2);
  EXPECT_TRUE(member.submit({}, {}, false).ok());
  EXPECT_FALSE(member.has_reports());
}

TEST(Member, held_submissions_are_told_after_a_flush_in_order) {
  Member member(0, 2);
  EXPECT_TRUE(submit_one(member, allreduce("a"), 1, true).ok());
  EXPECT_TRUE(submit_one(member, allreduce("b"), 2, true).ok());
  EXPECT_TRUE(member.is_held(1));
  EXPECT_FALSE(member.has_reports());
  member.flush();
  EXPECT_FALSE(member.is_held(1));
  const auto items = items_of(member);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(std::get<std::string>(std::get<Submit>(items[0]).name), "a");
  EXPECT_TRUE(std::get<Submit>(items[1]).more);
  EXPECT_TRUE(std::holds_alternative<Flush>(items[2]));
  // Nothing new: no second flush is told.
  member.flush();
  EXPECT_FALSE(member.has_reports());
}

TEST(Member, a_submission_without_more_tells_the_held_ones_before_itself) {
  Member member(0, 2);
  EXPECT_TRUE(submit_one(member, allreduce("a"), 1, true).ok());
  EXPECT_TRUE(submit_one(member, allreduce("b"), 2).ok());
  EXPECT_FALSE(member.is_held(1));
  const auto items = items_of(member);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_TRUE(std::get<Submit>(items[0]).more);
  EXPECT_FALSE(std::get<Submit>(items[1]).more);
  member.flush();
  EXPECT_FALSE(member.has_reports());
}

TEST(Member, an_eager_member_tells_held_submissions_at_once_and_its_flush_later) {
  Member member(MemberOptions{.rank = 0, .size = 2, .eager = true});
  EXPECT_TRUE(submit_one(member, allreduce("a"), 1, true).ok());
  EXPECT_TRUE(member.has_reports());
  const auto items = items_of(member);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_TRUE(std::get<Submit>(items[0]).more);
  EXPECT_TRUE(member.is_held(1));
  member.flush();
  EXPECT_THAT(items_of(member), ElementsAre(ReportItem(Flush{0})));
}

TEST(Member, very_many_held_submissions_are_told_early_still_marked) {
  Member member(0, 2);
  Ticket ticket = 0;
  while (!member.has_reports() && ticket < 5000) {
    ASSERT_TRUE(submit_one(member, allreduce(cat("t", ticket)), ticket + 1, true).ok());
    ++ticket;
  }
  EXPECT_GE(ticket, 1000u);
  EXPECT_LT(ticket, 1100u);
  for (const ReportItem& item : items_of(member)) EXPECT_TRUE(std::get<Submit>(item).more);
  EXPECT_TRUE(member.is_held(1));
}

TEST(Member, long_held_names_are_told_early) {
  Member member(0, 2);
  for (Ticket ticket = 1; ticket <= 13; ++ticket) {
    EXPECT_FALSE(member.has_reports());
    ASSERT_TRUE(submit_one(member, allreduce(std::string(4000, static_cast<char>('a' + ticket))), ticket, true).ok());
  }
  EXPECT_TRUE(member.has_reports());
}

TEST(Member, leaving_tells_nothing_of_what_is_held) {
  Member member(0, 2);
  EXPECT_TRUE(submit_one(member, allreduce("a"), 1, true).ok());
  member.leave();
  EXPECT_THAT(items_of(member), ElementsAre(ReportItem(Leave{})));
  EXPECT_EQ(member.in_flight(), 1u);
}

TEST(Member, failing_everything_gives_each_ticket_once) {
  Member member(0, 2);
  EXPECT_TRUE(submit_one(member, allreduce("a"), 3).ok());
  EXPECT_TRUE(submit_one(member, allreduce(""), 1).ok());
  EXPECT_TRUE(submit_one(member, allreduce("b"), 2, true).ok());
  EXPECT_THAT(member.fail_all(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(member.fail_all().empty());
  EXPECT_EQ(member.in_flight(), 0u);
  EXPECT_FALSE(member.has_reports());
  EXPECT_FALSE(member.is_held(2));
}

TEST(Member, unnamed_operations_are_numbered_as_submitted) {
  Member member(0, 2);
  EXPECT_TRUE(submit_one(member, allreduce(""), 1, true).ok());
  EXPECT_TRUE(submit_one(member, allreduce("named"), 2, true).ok());
  EXPECT_TRUE(submit_one(member, allreduce(""), 3).ok());
  const auto items = items_of(member);
  EXPECT_EQ(std::get<Number>(std::get<Submit>(items.at(0)).name).value, 0u);
  EXPECT_EQ(std::get<Number>(std::get<Submit>(items.at(2)).name).value, 1u);
}

class DecisionsOfNoCoordinator : public testing::TestWithParam<std::vector<DecisionItem>> {};

TEST_P(DecisionsOfNoCoordinator, are_an_error) {
  Member member(0, 2);
  const Signature reduce = allreduce("x").signature;
  const Signature gather = allgather("x", 1).signature;
  const Signature half = allreduce("x", Shape{4}, DType::F16).signature;
  ASSERT_TRUE(member
                  .on_decision(frame_of({DefineName{0, 0, "x"}, DefineSignature{0, reduce}, DefineSignature{1, gather},
                                         DefineSignature{2, half}}))
                  .ok());
  const auto events = member.on_decision(frame_of(GetParam()));
  ASSERT_FALSE(events.ok());
  EXPECT_EQ(events.status().code(), Code::Internal);
}

INSTANTIATE_TEST_SUITE_P(
    Each, DecisionsOfNoCoordinator,
    testing::Values(std::vector<DecisionItem>{DefineName{2, 0, "y"}},                         //
                    std::vector<DecisionItem>{DefineName{1, 0, "x"}},                         //
                    std::vector<DecisionItem>{DefineName{1, 9, "y"}},                         //
                    std::vector<DecisionItem>{DefineSignature{3, allreduce("x").signature}},  //
                    std::vector<DecisionItem>{DefineSignature{5, allreduce("x", {9}).signature}},
                    std::vector<DecisionItem>{BatchDecision{2, 0, {{Key{false, 0}, 0, {}}}}},  //
                    std::vector<DecisionItem>{BatchDecision{1, 4, {{Key{false, 0}, 0, {}}}}},  //
                    std::vector<DecisionItem>{BatchDecision{1, 0, {{Key{false, 1}, 0, {}}}}},  //
                    std::vector<DecisionItem>{BatchDecision{1, 0, {{Key{false, 0}, 7, {}}}}},  //
                    std::vector<DecisionItem>{BatchDecision{1, 0, {{Key{false, 0}, 0, {1, 1}}}}},
                    std::vector<DecisionItem>{BatchDecision{1, 0, {{Key{false, 0}, 1, {}}}}},
                    std::vector<DecisionItem>{BatchDecision{1, 0, {{Key{false, 0}, 1, {1, 1, 1}}}}},
                    std::vector<DecisionItem>{BatchDecision{1, 0, {{Key{false, 0}, 1, {INT64_MAX, 1}}}}},
                    std::vector<DecisionItem>{BatchDecision{1, 0, {{Key{false, 0}, 1, {int64_t{1} << 59, 1}}}}},
                    std::vector<DecisionItem>{BatchDecision{1, 0, {{Key{false, 0}, 0, {}}, {Key{true, 0}, 2, {}}}}},
                    std::vector<DecisionItem>{Failed{3, Code::Timeout, "t", {Key{true, 0}}, {0}}},
                    std::vector<DecisionItem>{Failed{0, Code::Timeout, "t", {Key{false, 8}}, {1}}},
                    std::vector<DecisionItem>{Left{2}}));

TEST(Member, a_failure_of_something_it_has_not_in_flight_is_no_event) {
  Member member(0, 2);
  const auto events = member.on_decision(
      frame_of({DefineName{0, 0, "x"}, Failed{0, Code::Timeout, "t", {Key{false, 0}, Key{true, 3}}, {0, 1}}}));
  ASSERT_TRUE(events.ok());
  EXPECT_TRUE(events->empty());
}

TEST(Member, a_failure_of_others_leaves_its_own_in_flight) {
  Member member(0, 2);
  ASSERT_TRUE(submit_one(member, allreduce("x"), 1).ok());
  const auto events =
      member.on_decision(frame_of({DefineName{0, 0, "x"}, Failed{0, Code::Timeout, "t", {Key{false, 0}}, {1}}}));
  ASSERT_TRUE(events.ok());
  EXPECT_TRUE(events->empty());
  EXPECT_EQ(member.in_flight(), 1u);
}

TEST(Member, random_decisions_never_do_harm) {
  std::mt19937_64 random(5);
  const Bytes good =
      frame_of({DefineName{0, 0, "x"}, DefineSignature{0, allreduce("x").signature},
                BatchDecision{1, 0, {{Key{false, 0}, 0, {}}}}, DefineSignature{1, allgather("x", 1).signature},
                BatchDecision{2, 0, {{Key{true, 0}, 1, {3, 4}}}}, Failed{0, Code::Mismatch, "t", {Key{false, 0}}, {0}},
                Left{1}, Left{0}});
  int survived = 0;
  for (int round = 0; round < 2000; ++round) {
    Member member(0, 2);
    ASSERT_TRUE(submit_one(member, allreduce("x"), 1).ok());
    ASSERT_TRUE(submit_one(member, allgather("", 3), 2).ok());
    Bytes bytes = good;
    bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    survived += member.on_decision(bytes).ok() ? 1 : 0;
  }
  EXPECT_GT(survived, 20);
  EXPECT_LT(survived, 1600);
}

}  // namespace
}  // namespace ronde::coord
