// SPDX-License-Identifier: Apache-2.0
#include "op/request.h"

#include <gtest/gtest.h>

namespace ronde {
namespace {

TEST(Signature, allreduce_text_tells_reduce_op_dtype_shape_and_scale) {
  auto request = make_request(OpKind::Allreduce, "x", DType::F32, {10, 20}, ReduceOp::Average, 0, 2.0);
  EXPECT_EQ(request.signature.to_string(), "allreduce(average) float32[10, 20] prescale=2");
  request = make_request(OpKind::Allreduce, "x", DType::BF16, {}, ReduceOp::Max, 0, 1.0, 0.25);
  EXPECT_EQ(request.signature.to_string(), "allreduce(max) bfloat16[] postscale=0.25");
}

TEST(Signature, broadcast_text_tells_the_root) {
  EXPECT_EQ(make_request(OpKind::Broadcast, "x", DType::F32, {3}, ReduceOp::Sum, 1).signature.to_string(),
            "broadcast float32[3] from rank 1");
}

TEST(Signature, allgather_text_leaves_the_first_dimension_open) {
  EXPECT_EQ(make_request(OpKind::Allgather, "x", DType::F32, {7, 4}).signature.to_string(), "allgather float32[*, 4]");
  EXPECT_EQ(make_request(OpKind::Allgather, "x", DType::I64, {0}).signature.to_string(), "allgather int64[*]");
}

TEST(Signature, barrier_text_is_one_word) {
  EXPECT_EQ(make_request(OpKind::Barrier, "", DType::F64, {2, 3}).signature.to_string(), "barrier");
}

TEST(Describe, named_operations_show_their_name_and_unnamed_ones_their_number) {
  const auto allreduce = make_request(OpKind::Allreduce, "fc1.weight", DType::F32, {2});
  EXPECT_EQ(describe(allreduce.signature, allreduce.name, 5), "allreduce 'fc1.weight'");
  const auto barrier = make_request(OpKind::Barrier, "", DType::F32, {});
  EXPECT_EQ(describe(barrier.signature, barrier.name, 12), "unnamed barrier 12");
}

TEST(MakeRequest, allreduce_keeps_reduce_op_and_scales_and_drops_the_root) {
  const auto request = make_request(OpKind::Allreduce, "x", DType::F16, {4}, ReduceOp::Min, 3, 2.0, 3.0, 7);
  EXPECT_EQ(request.set, 7u);
  EXPECT_EQ(request.name, "x");
  EXPECT_EQ(request.signature.op, OpKind::Allreduce);
  EXPECT_EQ(request.signature.dtype, DType::F16);
  EXPECT_EQ(request.signature.reduce, ReduceOp::Min);
  EXPECT_EQ(request.signature.prescale, 2.0);
  EXPECT_EQ(request.signature.postscale, 3.0);
  EXPECT_EQ(request.signature.root, 0);
  EXPECT_EQ(request.signature.shape, Shape({4}));
  EXPECT_EQ(request.first_dim, 0);
}

TEST(MakeRequest, broadcast_keeps_the_root_and_drops_what_belongs_to_reductions) {
  const auto a = make_request(OpKind::Broadcast, "x", DType::I32, {4}, ReduceOp::Min, 2, 5.0, 6.0);
  EXPECT_EQ(a.signature, make_request(OpKind::Broadcast, "x", DType::I32, {4}, ReduceOp::Sum, 2).signature);
  EXPECT_EQ(a.signature.root, 2);
  EXPECT_NE(a.signature, make_request(OpKind::Broadcast, "x", DType::I32, {4}, ReduceOp::Sum, 1).signature);
}

TEST(MakeRequest, allgathers_of_different_first_dimensions_have_one_signature) {
  const auto a = make_request(OpKind::Allgather, "x", DType::F32, {5, 3}, ReduceOp::Max, 2, 9.0, 9.0);
  const auto b = make_request(OpKind::Allgather, "x", DType::F32, {0, 3});
  EXPECT_EQ(a.signature, b.signature);
  EXPECT_EQ(a.first_dim, 5);
  EXPECT_EQ(b.first_dim, 0);
  EXPECT_EQ(a.signature.shape, Shape({0, 3}));
  EXPECT_NE(a.signature, make_request(OpKind::Allgather, "x", DType::F32, {5, 4}).signature);
  EXPECT_NE(a.signature, make_request(OpKind::Allgather, "x", DType::F32, {5}).signature);
}

TEST(MakeRequest, barriers_are_all_alike) {
  EXPECT_EQ(make_request(OpKind::Barrier, "", DType::F64, {2, 3}, ReduceOp::Max, 1, 2.0, 3.0).signature,
            make_request(OpKind::Barrier, "", DType::U8, {}).signature);
}

TEST(MakeRequestDeathTest, an_allgather_without_dimensions_is_a_bug_of_the_caller) {
  EXPECT_DEATH((void)make_request(OpKind::Allgather, "x", DType::F32, {}), "no first one");
}

}  // namespace
}  // namespace ronde
