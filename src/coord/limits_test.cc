// SPDX-License-Identifier: Apache-2.0
#include "coord/limits.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace ronde::coord {
namespace {

Signature reduce_of(const Shape& shape) {
  return make_request(OpKind::Allreduce, "x", DType::F32, shape).signature;
}

TEST(Limits, every_request_made_from_the_op_table_passes) {
  for (const OpRow& op : kOps) {
    if (op.changes_sets) continue;
    for (const DTypeRow& dtype : kDTypes) {
      EXPECT_TRUE(
          check_signature(make_request(op.kind, "x", dtype.dtype, Shape{2, 3}, ReduceOp::Sum, 0).signature).ok());
    }
  }
}

TEST(Limits, tensors_are_bounded_long_before_64_bits_overflow) {
  EXPECT_TRUE(check_signature(reduce_of({int64_t{1} << 58})).ok());
  EXPECT_FALSE(check_signature(reduce_of({(int64_t{1} << 58) + 1})).ok());
  EXPECT_FALSE(check_signature(reduce_of({int64_t{1} << 40, int64_t{1} << 40})).ok());
  // An empty tensor is bounded as if it were not.
  EXPECT_FALSE(check_signature(reduce_of({0, int64_t{1} << 40, int64_t{1} << 40})).ok());
  EXPECT_FALSE(check_signature(reduce_of({-1})).ok());
}

TEST(Limits, bytes_count_the_rows_of_all_members) {
  const Signature gather = make_request(OpKind::Allgather, "x", DType::F64, Shape{2, 3}).signature;
  EXPECT_EQ(tensor_bytes(gather, 10), 10 * 3 * 8);
  EXPECT_EQ(tensor_bytes(gather, 0), 0);
  EXPECT_EQ(tensor_bytes(gather, -1), -1);
  EXPECT_EQ(tensor_bytes(gather, std::numeric_limits<int64_t>::max()), -1);
  EXPECT_EQ(tensor_bytes(reduce_of({5, 5}), 1000), 100);
  EXPECT_EQ(tensor_bytes(reduce_of({}), 0), 4);
}

TEST(Limits, sums_of_rows_do_not_overflow) {
  EXPECT_EQ(sum_of(std::vector<int64_t>{1, 2, 3}), 6);
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of(std::vector<int64_t>{1, -2}), -1);
  EXPECT_EQ(sum_of(std::vector<int64_t>{INT64_MAX, 1}), -1);
}

TEST(Limits, a_change_of_sets_says_which_and_no_other_op_does) {
  const auto add = [](std::vector<int32_t> ranks) {
    return check_signature(make_set_request(OpKind::AddSet, std::move(ranks)).signature).ok();
  };
  EXPECT_TRUE(add({0}));
  EXPECT_TRUE(add({1, 4, 5}));
  EXPECT_FALSE(add({}));
  EXPECT_FALSE(add({-1, 2}));
  EXPECT_FALSE(add({2, 2}));
  EXPECT_FALSE(add({3, 2}));
  EXPECT_FALSE(add(std::vector<int32_t>(kMaxSubject + 1, 7)));
  EXPECT_TRUE(check_signature(make_set_request(OpKind::RemoveSet, {3}).signature).ok());
  EXPECT_FALSE(check_signature(make_set_request(OpKind::RemoveSet, {0}).signature).ok());
  EXPECT_FALSE(check_signature(make_set_request(OpKind::RemoveSet, {1, 2}).signature).ok());
  Signature barrier = make_request(OpKind::Barrier, "", DType::U8, {}).signature;
  barrier.subject = {1};
  EXPECT_FALSE(check_signature(barrier).ok());
}

TEST(Limits, what_does_not_matter_must_be_neutral) {
  Signature broadcast = make_request(OpKind::Broadcast, "x", DType::F32, Shape{2}, ReduceOp::Sum, 1).signature;
  EXPECT_TRUE(check_signature(broadcast).ok());
  broadcast.prescale = 2.0;
  EXPECT_FALSE(check_signature(broadcast).ok());
  Signature reduce = reduce_of({2});
  reduce.root = 1;
  EXPECT_FALSE(check_signature(reduce).ok());
  reduce.root = 0;
  reduce.postscale = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(check_signature(reduce).ok());
  reduce.postscale = 1.0;
  reduce.reduce = static_cast<ReduceOp>(2);
  EXPECT_FALSE(check_signature(reduce).ok());
}

TEST(Limits, a_gathered_tensor_has_a_first_dimension_that_is_not_compared) {
  Signature gather = make_request(OpKind::Allgather, "x", DType::F32, Shape{2, 3}).signature;
  EXPECT_TRUE(check_signature(gather).ok());
  gather.shape = Shape{2, 3};
  EXPECT_FALSE(check_signature(gather).ok());
  gather.shape = Shape{};
  EXPECT_FALSE(check_signature(gather).ok());
}

}  // namespace
}  // namespace ronde::coord
