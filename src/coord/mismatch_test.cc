// SPDX-License-Identifier: Apache-2.0
#include "coord/mismatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ronde::coord {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

Signature reduce_of(const Shape& shape, DType dtype = DType::F32, ReduceOp op = ReduceOp::Sum, double prescale = 1.0) {
  return make_request(OpKind::Allreduce, "x", dtype, shape, op, 0, prescale).signature;
}
Signature broadcast_of(Rank root) {
  return make_request(OpKind::Broadcast, "x", DType::F32, {1}, ReduceOp::Sum, root).signature;
}
Signature gather_of(const Shape& shape) {
  return make_request(OpKind::Allgather, "x", DType::F32, shape).signature;
}

TEST(Mismatch, names_what_differs) {
  const Signature a = reduce_of({1});
  EXPECT_THAT(signature_mismatch(0, a, 1, reduce_of({2})), EndsWith("must agree on the shape"));
  EXPECT_THAT(signature_mismatch(0, a, 1, reduce_of({1}, DType::F16)), EndsWith("must agree on the dtype"));
  EXPECT_THAT(signature_mismatch(0, a, 1, reduce_of({1}, DType::F32, ReduceOp::Max)), EndsWith("on the reduce op"));
  EXPECT_THAT(signature_mismatch(0, a, 1, reduce_of({1}, DType::F32, ReduceOp::Sum, 2.0)),
              EndsWith("on the scale factors"));
  EXPECT_THAT(signature_mismatch(0, broadcast_of(0), 1, broadcast_of(1)), EndsWith("on the root rank"));
  EXPECT_THAT(signature_mismatch(0, gather_of({2, 3}), 1, gather_of({2, 4})),
              EndsWith("on all dimensions but the first"));
  EXPECT_THAT(signature_mismatch(0, a, 1, gather_of({2, 4})), EndsWith("on the operation"));
  EXPECT_THAT(signature_mismatch(0, a, 1, reduce_of({2}, DType::I32, ReduceOp::Min)),
              EndsWith("on the reduce op, the dtype and the shape"));
}

TEST(Mismatch, lists_of_ranks_read_well_and_stay_short) {
  EXPECT_EQ(list_ranks({3}), "rank 3");
  EXPECT_EQ(list_ranks({1, 2}), "ranks 1 and 2");
  EXPECT_EQ(list_ranks({1, 2, 5}), "ranks 1, 2 and 5");
  EXPECT_EQ(list_ranks({0, 1, 2, 3, 4, 5, 6, 7}), "ranks 0, 1, 2, 3, 4, 5, 6 and 7");
  std::vector<Rank> many;
  for (Rank rank = 0; rank < 100; ++rank) many.push_back(rank);
  EXPECT_EQ(list_ranks(many), "ranks 0, 1, 2, 3, 4, 5, 6 and 93 more");
}

TEST(Mismatch, groups_show_both_sides_and_the_first_difference) {
  EXPECT_EQ(
      group_mismatch({0, {"'x'", "'y'"}}, {2, {"'x'", "'z'"}}),
      "rank 0 submits the group of 2: 'x' and 'y', rank 2 the group of 2: 'x' and 'z'; number 2 is 'y' on rank 0 and "
      "'z' on rank 2; all ranks must group the same operations in the same order");
  EXPECT_THAT(group_mismatch({0, {"'x'", "'y'"}}, {1, {"'x'"}}),
              HasSubstr("rank 0 submits the group of 2: 'x' and 'y', rank 1 'x' alone; all ranks"));
}

TEST(Mismatch, a_group_of_thousands_makes_a_short_text) {
  Call first{0, std::vector<std::string>(10'000, std::string(200, 'n'))};
  Call second = first;
  second.rank = 1;
  second.keys[5000] = "'other'";
  const std::string text = group_mismatch(first, second);
  EXPECT_LT(text.size(), 2048u);
  EXPECT_THAT(text, HasSubstr("number 5001 is"));
  EXPECT_THAT(text, HasSubstr("'other' on rank 1"));
}

TEST(Mismatch, clipping_keeps_characters_whole) {
  EXPECT_EQ(clipped("short", 10), "short");
  EXPECT_EQ(clipped("0123456789", 10), "0123456789");
  EXPECT_EQ(clipped("0123456789a", 10), "0123456...");
  EXPECT_EQ(clipped("012345\u00e96789a", 10), "012345...");
}

}  // namespace
}  // namespace ronde::coord
