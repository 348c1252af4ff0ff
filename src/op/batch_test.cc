// SPDX-License-Identifier: Apache-2.0
#include "op/batch.h"

#include <gtest/gtest.h>

namespace ronde {
namespace {

BatchTensor tensor(std::string name, const Shape& shape, std::vector<int64_t> first_dims = {}) {
  return BatchTensor{.name = std::move(name), .number = 0, .shape = shape, .first_dims = std::move(first_dims)};
}

Batch allgather_batch() {
  Batch batch;
  batch.members = {0, 2, 5};
  batch.op = OpKind::Allgather;
  batch.dtype = DType::F64;
  batch.tensors = {tensor("a", {0, 3, 2}, {4, 0, 1}), tensor("b", {0}, {1, 2, 3}), tensor("nothing", {0, 5}, {0, 0, 0}),
                   tensor("empty rows", {0, 0}, {7, 8, 9})};
  return batch;
}

Batch allreduce_batch(ReduceOp reduce) {
  Batch batch;
  batch.members = {0, 1, 2, 3};
  batch.dtype = DType::F16;
  batch.reduce = reduce;
  batch.prescale = 0.5;
  batch.postscale = 3.0;
  batch.tensors = {tensor("w", {2, 3}), tensor("scalar", {}), tensor("empty", {0, 9})};
  return batch;
}

TEST(Batch, allgather_members_contribute_their_own_rows) {
  const auto batch = allgather_batch();
  EXPECT_EQ(count_of(batch, 0, 0), 24);
  EXPECT_EQ(count_of(batch, 0, 1), 0);
  EXPECT_EQ(count_of(batch, 0, 2), 6);
  EXPECT_EQ(count_of(batch, 1, 1), 2);
  EXPECT_EQ(count_of(batch, 2, 1), 0);
  EXPECT_EQ(count_of(batch, 3, 2), 0);
}

TEST(Batch, allgather_output_has_the_rows_of_all) {
  const auto batch = allgather_batch();
  EXPECT_EQ(output_shape(batch, 0, 1), Shape({5, 3, 2}));
  EXPECT_EQ(output_count(batch, 0, 1), 30);
  EXPECT_EQ(output_shape(batch, 1, 1), Shape({6}));
  EXPECT_EQ(output_count(batch, 1, 1), 6);
  EXPECT_EQ(output_shape(batch, 2, 1), Shape({0, 5}));
  EXPECT_EQ(output_count(batch, 2, 1), 0);
  EXPECT_EQ(output_shape(batch, 3, 1), Shape({24, 0}));
  EXPECT_EQ(output_count(batch, 3, 1), 0);
}

TEST(Batch, reducescatter_gives_the_first_members_the_rows_that_are_left_over) {
  Batch batch = allreduce_batch(ReduceOp::Sum);
  batch.op = OpKind::Reducescatter;
  batch.tensors = {tensor("w", {6, 3}), tensor("few", {1}), tensor("none", {0, 9})};
  const std::vector<int64_t> rows{2, 2, 1, 1};
  for (size_t index = 0; index < 4; ++index) {
    EXPECT_EQ(output_shape(batch, 0, index), Shape({rows[index], 3}));
    EXPECT_EQ(output_count(batch, 0, index), rows[index] * 3);
    EXPECT_EQ(count_of(batch, 0, index), rows[index] * 3);
    EXPECT_EQ(output_count(batch, 1, index), index == 0 ? 1 : 0);
    EXPECT_EQ(output_count(batch, 2, index), 0);
  }
}

TEST(Batch, allreduce_output_has_the_shape_of_the_input) {
  const auto batch = allreduce_batch(ReduceOp::Sum);
  for (size_t index = 0; index < 4; ++index) EXPECT_EQ(count_of(batch, 0, index), 6);
  EXPECT_EQ(output_shape(batch, 0, 1), Shape({2, 3}));
  EXPECT_EQ(output_count(batch, 0, 1), 6);
  EXPECT_EQ(output_count(batch, 1, 1), 1);
  EXPECT_EQ(output_count(batch, 2, 1), 0);
}

TEST(Batch, barrier_has_no_elements) {
  Batch batch;
  batch.members = {0, 1};
  batch.op = OpKind::Barrier;
  batch.tensors = {tensor("", {})};
  EXPECT_EQ(count_of(batch, 0, 1), 0);
  EXPECT_EQ(output_count(batch, 0, 1), 0);
}

TEST(Batch, counts_beyond_32_bits_are_exact) {
  Batch batch;
  batch.members = {0, 1};
  batch.op = OpKind::Allgather;
  batch.dtype = DType::U8;
  batch.tensors = {tensor("big", {0, 1 << 20}, {3 << 20, 2 << 20})};
  EXPECT_EQ(count_of(batch, 0, 0), int64_t{3} << 40);
  EXPECT_EQ(output_count(batch, 0, 1), int64_t{5} << 40);
}

TEST(Reduction, average_is_a_sum_divided_by_the_members) {
  const auto reduction = reduction_of(allreduce_batch(ReduceOp::Average));
  EXPECT_EQ(reduction.combine, Combine::Sum);
  EXPECT_EQ(reduction.pre.factor, 0.5);
  EXPECT_EQ(reduction.pre.divisor, 1);
  EXPECT_EQ(reduction.post.factor, 3.0);
  EXPECT_EQ(reduction.post.divisor, 4);
}

TEST(Reduction, other_reduce_ops_only_scale) {
  const std::pair<ReduceOp, Combine> cases[] = {{ReduceOp::Sum, Combine::Sum},
                                                {ReduceOp::Min, Combine::Min},
                                                {ReduceOp::Max, Combine::Max},
                                                {ReduceOp::Product, Combine::Product}};
  for (const auto& [op, combine] : cases) {
    const auto reduction = reduction_of(allreduce_batch(op));
    EXPECT_EQ(reduction.combine, combine) << name_of(op);
    EXPECT_EQ(reduction.pre.factor, 0.5);
    EXPECT_EQ(reduction.pre.divisor, 1);
    EXPECT_EQ(reduction.post.factor, 3.0);
    EXPECT_EQ(reduction.post.divisor, 1);
  }
}

TEST(Reduction, an_op_that_does_not_reduce_leaves_elements_alone) {
  auto batch = allreduce_batch(ReduceOp::Average);
  batch.op = OpKind::Broadcast;
  EXPECT_TRUE(reduction_of(batch).pre.is_identity());
  EXPECT_TRUE(reduction_of(batch).post.is_identity());
}

}  // namespace
}  // namespace ronde
