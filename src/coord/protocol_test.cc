// SPDX-License-Identifier: Apache-2.0
// Reports that no member sends: the coordinator answers with an error, never with harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "coord/codec.h"
#include "coord/test_cluster.h"

namespace ronde::coord {
namespace {

Bytes frame_of(const std::vector<ReportItem>& items) {
  Writer out;
  for (const ReportItem& item : items) encode(out, item);
  return out.take();
}

Submit named(const std::string& name, const Request& request = allreduce("")) {
  Submit out{.set = 0, .name = name, .signature = request.signature};
  if (request.signature.op == OpKind::Allgather) out.first_dim = request.first_dim;
  return out;
}
Submit with(Submit item, int64_t first_dim) {
  item.first_dim = first_dim;
  return item;
}
Submit in_set(Submit item, SetId set) {
  item.set = set;
  return item;
}

class ReportsOfNoMember : public testing::TestWithParam<std::vector<ReportItem>> {};

TEST_P(ReportsOfNoMember, are_an_error_that_names_the_rank) {
  Coordinator coordinator({.size = 2});
  const Status status = coordinator.on_report(1, frame_of(GetParam()), Time{});
  EXPECT_EQ(status.code(), Code::Internal);
  EXPECT_THAT(status.message(), testing::HasSubstr("rank 1"));
  // It is still in order for the other rank.
  EXPECT_TRUE(coordinator.on_report(0, frame_of({named("other")}), Time{}).ok());
  (void)coordinator.take_decisions();
}

const Signature kRootedAt9 = make_request(OpKind::Broadcast, "", DType::F32, {1}, ReduceOp::Sum, 9).signature;

INSTANTIATE_TEST_SUITE_P(
    Each, ReportsOfNoMember,
    testing::Values(std::vector<ReportItem>{Submit{.name = NameId{0}, .signature = allreduce("").signature}},
                    std::vector<ReportItem>{Submit{.name = std::string("x"), .signature = SignatureId{0}}},
                    std::vector<ReportItem>{Submit{.name = Number{1}, .signature = allreduce("").signature}},
                    std::vector<ReportItem>{in_set(named("x"), 4)},                              //
                    std::vector<ReportItem>{Flush{4}},                                           //
                    std::vector<ReportItem>{named("x"), named("x")},                             //
                    std::vector<ReportItem>{Group{2}, named("x"), named("x")},                   //
                    std::vector<ReportItem>{Group{2}, named("x"), Flush{0}},                     //
                    std::vector<ReportItem>{Group{2}, named("x"), Leave{}},                      //
                    std::vector<ReportItem>{Group{2}, Group{2}},                                 //
                    std::vector<ReportItem>{Leave{}, named("x")},                                //
                    std::vector<ReportItem>{with(named("x"), 3)},                                //
                    std::vector<ReportItem>{with(named("x", allgather("", 1)), -1)},             //
                    std::vector<ReportItem>{with(named("x", allgather("", 1)), INT64_MAX / 2)},  //
                    std::vector<ReportItem>{Submit{.name = std::string("x"), .signature = kRootedAt9}}));

TEST(Protocol, a_name_of_one_set_is_unknown_in_another) {
  Coordinator coordinator({.size = 2});
  ASSERT_TRUE(coordinator.on_report(0, frame_of({named("x")}), Time{}).ok());
  const Submit known{.name = NameId{0}, .signature = SignatureId{0}};
  EXPECT_TRUE(coordinator.on_report(1, frame_of({known}), Time{}).ok());
  EXPECT_FALSE(coordinator.on_report(1, frame_of({in_set(known, 1)}), Time{}).ok());
}

TEST(Protocol, random_reports_never_do_harm) {
  std::mt19937_64 random(17);
  const Bytes good =
      frame_of({named("x"), named("g", allgather("", 3)),
                Submit{.more = true, .name = Number{0}, .signature = SignatureId{0}}, Group{2}, named("y"), named("z"),
                Flush{0}, Submit{.name = NameId{2}, .signature = SignatureId{1}, .first_dim = 4}});
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    Coordinator coordinator({.size = 3, .cut_early = round % 2 == 0, .collective_timeout = Duration(10)});
    for (Rank rank = 0; rank < 3; ++rank) {
      Bytes bytes = good;
      if (random() % 3 != 0) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      if (random() % 3 == 0) bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 8);
      refused += coordinator.on_report(rank, bytes, Time{}).ok() ? 0 : 1;
    }
    coordinator.tick(Time(Duration(round % 20)));
    Member member(0, 3);
    for (const Bytes& frame : coordinator.take_decisions()) EXPECT_TRUE(member.on_decision(frame).ok());
  }
  EXPECT_GT(refused, 250);
}

}  // namespace
}  // namespace ronde::coord
