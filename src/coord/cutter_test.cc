// SPDX-License-Identifier: Apache-2.0
#include "coord/cutter.h"

#include <gtest/gtest.h>

namespace ronde::coord {
namespace {

using Batches = std::vector<std::vector<uint32_t>>;

TEST(Cutter, nothing_makes_no_batch) {
  EXPECT_TRUE(cut({}, {}).empty());
}

TEST(Cutter, one_class_makes_one_batch_in_the_order_of_readiness) {
  const std::vector<Piece> pieces(5, Piece{.fusion_class = 3, .bytes = 100, .wire_bytes = 4});
  EXPECT_EQ(cut(pieces, {}), (Batches{{0, 1, 2, 3, 4}}));
}

TEST(Cutter, classes_do_not_mix_and_keep_the_order_of_their_first_pieces) {
  const std::vector<Piece> pieces{{.fusion_class = 2}, {.fusion_class = 1}, {.fusion_class = 2}, {.fusion_class = 1}};
  EXPECT_EQ(cut(pieces, {}), (Batches{{0, 2}, {1, 3}}));
}

TEST(Cutter, a_batch_closes_before_its_frame_overflows) {
  const std::vector<Piece> pieces(5, Piece{.wire_bytes = 10});
  EXPECT_EQ(cut(pieces, {.wire_bytes = 20}), (Batches{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(cut(pieces, {.wire_bytes = 29}), (Batches{{0, 1}, {2, 3}, {4}}));
}

TEST(Cutter, a_batch_closes_once_it_holds_the_asked_bytes) {
  std::vector<Piece> pieces;
  for (uint32_t i = 0; i < 6; ++i) pieces.push_back(Piece{.unit = i, .bytes = 60});
  EXPECT_EQ(cut(pieces, {.batch_bytes = 100}), (Batches{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(cut(pieces, {.batch_bytes = 60}), (Batches{{0}, {1}, {2}, {3}, {4}, {5}}));
}

TEST(Cutter, the_asked_bytes_do_not_tear_a_group) {
  std::vector<Piece> pieces(4, Piece{.unit = 0, .bytes = 60});
  pieces.push_back(Piece{.unit = 1, .bytes = 60});
  EXPECT_EQ(cut(pieces, {.batch_bytes = 100}), (Batches{{0, 1, 2, 3}, {4}}));
}

TEST(Cutter, the_frame_tears_a_group_that_does_not_fit) {
  const std::vector<Piece> pieces(4, Piece{.unit = 0, .wire_bytes = 10});
  EXPECT_EQ(cut(pieces, {.wire_bytes = 25}), (Batches{{0, 1}, {2, 3}}));
}

}  // namespace
}  // namespace ronde::coord
