// SPDX-License-Identifier: Apache-2.0
#include "coord/tables.h"

#include <gtest/gtest.h>

namespace ronde::coord {
namespace {

Signature reduce_of(const Shape& shape, DType dtype = DType::F32, ReduceOp op = ReduceOp::Sum) {
  return make_request(OpKind::Allreduce, "x", dtype, shape, op).signature;
}

TEST(NameTable, one_name_in_two_sets_has_two_ids) {
  NameTable table;
  EXPECT_TRUE(table.define(0, 0, "x").ok());
  EXPECT_TRUE(table.define(1, 7, "x").ok());
  EXPECT_EQ(table.find(0, "x"), 0u);
  EXPECT_EQ(table.find(7, "x"), 1u);
  EXPECT_EQ(table.find(1, "x"), std::nullopt);
  EXPECT_EQ(table.find(0, "y"), std::nullopt);
  EXPECT_EQ(table.at(1)->set, 7u);
  EXPECT_EQ(table.at(2), nullptr);
}

TEST(NameTable, ids_grow_one_by_one_and_are_never_given_twice) {
  NameTable table;
  EXPECT_FALSE(table.define(1, 0, "x").ok());
  EXPECT_TRUE(table.define(0, 0, "x").ok());
  EXPECT_FALSE(table.define(0, 0, "y").ok());
  EXPECT_FALSE(table.define(1, 0, "x").ok());
}

TEST(NameTable, names_stay_where_they_are_while_the_table_grows) {
  NameTable table;
  for (uint32_t id = 0; id < 5000; ++id) ASSERT_TRUE(table.define(id, 0, cat("n", id)).ok());
  for (uint32_t id = 0; id < 5000; ++id) ASSERT_EQ(table.find(0, cat("n", id)), id);
}

TEST(SignatureTable, each_field_makes_another_signature) {
  SignatureTable table;
  std::vector<Signature> all{
      reduce_of({1}),
      reduce_of({2}),
      reduce_of({1, 1}),
      reduce_of({1}, DType::F64),
      reduce_of({1}, DType::F32, ReduceOp::Max),
      make_request(OpKind::Broadcast, "x", DType::F32, {1}, ReduceOp::Sum, 0).signature,
      make_request(OpKind::Broadcast, "x", DType::F32, {1}, ReduceOp::Sum, 1).signature,
      make_request(OpKind::Allreduce, "x", DType::F32, {1}, ReduceOp::Sum, 0, 2.0).signature,
      make_request(OpKind::Allreduce, "x", DType::F32, {1}, ReduceOp::Sum, 0, 1.0, 2.0).signature};
  for (uint32_t id = 0; id < all.size(); ++id) {
    EXPECT_EQ(table.find(all[id]), std::nullopt);
    ASSERT_TRUE(table.define(id, all[id]).ok());
  }
  for (uint32_t id = 0; id < all.size(); ++id) EXPECT_EQ(table.find(all[id]), id);
  EXPECT_FALSE(table.define(table.next_id(), all[3]).ok());
  EXPECT_FALSE(table.define(100, reduce_of({77})).ok());
}

TEST(SignatureTable, a_fusion_class_is_everything_but_the_shape) {
  SignatureTable table;
  ASSERT_TRUE(table.define(0, reduce_of({1})).ok());
  ASSERT_TRUE(table.define(1, reduce_of({2, 3})).ok());
  ASSERT_TRUE(table.define(2, reduce_of({1}, DType::F16)).ok());
  EXPECT_EQ(table.at(0)->fusion_class, table.at(1)->fusion_class);
  EXPECT_NE(table.at(0)->fusion_class, table.at(2)->fusion_class);
}

}  // namespace
}  // namespace ronde::coord
