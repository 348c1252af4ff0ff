// SPDX-License-Identifier: Apache-2.0
#include "op/op.h"

#include <gtest/gtest.h>

#include <set>

namespace ronde {
namespace {

TEST(OpTable, each_row_stands_at_the_value_of_its_kind) {
  for (size_t i = 0; i < kOps.size(); ++i) EXPECT_EQ(static_cast<size_t>(kOps[i].kind), i);
}

TEST(OpTable, names_are_those_of_the_public_functions) {
  EXPECT_EQ(name_of(OpKind::Allreduce), "allreduce");
  EXPECT_EQ(name_of(OpKind::Broadcast), "broadcast");
  EXPECT_EQ(name_of(OpKind::Allgather), "allgather");
  EXPECT_EQ(name_of(OpKind::Barrier), "barrier");
}

TEST(ReduceOps, exactly_the_public_numbers_are_reduce_ops) {
  const std::set<int> valid{0, 1, 3, 4, 5};
  for (int value = 0; value < 256; ++value) {
    EXPECT_EQ(is_reduce_op(static_cast<uint8_t>(value)), valid.contains(value)) << value;
  }
}

TEST(ReduceOps, each_has_its_own_name) {
  EXPECT_EQ(name_of(ReduceOp::Average), "average");
  EXPECT_EQ(name_of(ReduceOp::Sum), "sum");
  EXPECT_EQ(name_of(ReduceOp::Min), "min");
  EXPECT_EQ(name_of(ReduceOp::Max), "max");
  EXPECT_EQ(name_of(ReduceOp::Product), "product");
}

}  // namespace
}  // namespace ronde
