// SPDX-License-Identifier: Apache-2.0
#include "collective/run/cursor.h"

#include <gtest/gtest.h>

#include <array>

#include "collective/run/blocks.h"

namespace ronde::collective {
namespace {

// Addresses that nobody dereferences.
std::byte* fake(uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}
uint64_t number(const std::byte* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

TEST(Parts, cover_everything_once_and_differ_by_one_at_most) {
  for (int64_t count = 0; count < 40; ++count) {
    for (int parts = 1; parts <= 17; ++parts) {
      int64_t at = 0;
      for (int i = 0; i < parts; ++i) {
        const Range part = part_of(count, parts, i);
        EXPECT_EQ(part.begin, at);
        EXPECT_TRUE(part.count() == count / parts || part.count() == count / parts + 1);
        EXPECT_LE(part.count(), i == 0 ? count : part_of(count, parts, i - 1).count());
        at = part.end;
      }
      EXPECT_EQ(at, count);
    }
  }
}

TEST(Parts, hold_beyond_32_bits) {
  const int64_t count = (int64_t{1} << 40) + 4;
  EXPECT_EQ(part_of(count, 7, 6).end, count);
  EXPECT_EQ(part_of(count, 7, 0).count(), count / 7 + 1);
}

SpanList three_spans() {
  SpanList list(4);
  list.add({.in = fake(0x1000), .out = fake(0x10000), .count = 5});
  list.add({.in = fake(0x2000), .out = fake(0x20000), .count = 0});
  list.add({.in = fake(0x3000), .out = fake(0x30000), .count = 3});
  list.add({.in = nullptr, .out = fake(0x40000), .count = 4});
  return list;
}

// Every (in, out) address of the range, element by element.
std::vector<std::pair<uint64_t, uint64_t>> walk(const SpanList& list, Range range, int64_t limit) {
  std::vector<std::pair<uint64_t, uint64_t>> out;
  SpanCursor cursor(list, range);
  for (Piece piece; cursor.next(piece, limit);) {
    EXPECT_GT(piece.count, 0);
    EXPECT_LE(piece.count, limit);
    for (int64_t i = 0; i < piece.count; ++i)
      out.emplace_back(piece.in == nullptr ? 0 : number(piece.in + i * 4),
                       piece.out == nullptr ? 0 : number(piece.out + i * 4));
  }
  return out;
}

TEST(Cursor, walks_any_range_as_the_elements_one_by_one) {
  const SpanList list = three_spans();
  ASSERT_EQ(list.total(), 12);
  const auto all = walk(list, {0, 12}, 1);
  ASSERT_EQ(all.size(), 12U);
  EXPECT_EQ(all[4], std::pair(uint64_t{0x1010}, uint64_t{0x10010}));
  EXPECT_EQ(all[5], std::pair(uint64_t{0x3000}, uint64_t{0x30000})) << "the empty span has no piece";
  EXPECT_EQ(all[8], std::pair(uint64_t{0}, uint64_t{0x40000})) << "no input";
  for (int64_t begin = 0; begin <= 12; ++begin) {
    for (int64_t end = begin; end <= 12; ++end) {
      for (const int64_t limit : {int64_t{1}, int64_t{2}, int64_t{7}, INT64_MAX}) {
        const auto part = walk(list, {begin, end}, limit);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin, all.begin() + end));
      }
    }
  }
}

TEST(Cursor, yields_whole_spans_where_it_can) {
  const SpanList list = three_spans();
  SpanCursor cursor(list, {2, 12});
  std::vector<int64_t> counts;
  for (Piece piece; cursor.next(piece);) counts.push_back(piece.count);
  EXPECT_EQ(counts, (std::vector<int64_t>{3, 3, 4}));
}

TEST(Cursor, of_an_empty_list_is_at_its_end) {
  const SpanList list(8);
  SpanCursor cursor(list, {0, 0});
  Piece piece;
  EXPECT_FALSE(cursor.next(piece));
}

TEST(Chunks, of_a_batch_are_the_chunks_of_its_tensors) {
  const SpanList list = three_spans();
  const SpanList first = list.chunk(4, 0);  // 5 = 2+1+1+1, 3 = 1+1+1+0, 4 = 1+1+1+1
  EXPECT_EQ(walk(first, {0, first.total()}, 9),
            (std::vector<std::pair<uint64_t, uint64_t>>{
                {0x1000, 0x10000}, {0x1004, 0x10004}, {0x3000, 0x30000}, {0, 0x40000}}));
  const SpanList last = list.chunk(4, 3);
  EXPECT_EQ(walk(last, {0, last.total()}, 9),
            (std::vector<std::pair<uint64_t, uint64_t>>{{0x1010, 0x10010}, {0, 0x4000C}}));
}

TEST(Cursor, counts_beyond_32_bits) {
  const int64_t big = (int64_t{1} << 32) + 3;
  SpanList list(8);
  list.add({.in = fake(1ULL << 40), .out = fake(1ULL << 44), .count = big});
  list.add({.in = fake(1ULL << 45), .out = fake(1ULL << 46), .count = 3 * big});
  ASSERT_EQ(list.total(), 4 * big);
  SpanCursor cursor(list, {big - 1, big + 2});
  Piece piece;
  ASSERT_TRUE(cursor.next(piece));
  EXPECT_EQ(number(piece.in), (1ULL << 40) + static_cast<uint64_t>(big - 1) * 8);
  EXPECT_EQ(piece.count, 1);
  ASSERT_TRUE(cursor.next(piece));
  EXPECT_EQ(number(piece.out), 1ULL << 46);
  EXPECT_EQ(piece.count, 2);
  EXPECT_FALSE(cursor.next(piece));

  int64_t sum = 0;
  for (int i = 0; i < 3; ++i) sum += list.chunk(3, i).total();
  EXPECT_EQ(sum, 4 * big);
}

BoundBatch gather_batch() {
  BoundBatch bound;
  bound.batch.members = {3, 5, 8};
  bound.batch.op = OpKind::Allgather;
  bound.batch.dtype = DType::I32;
  bound.batch.tensors.push_back({.name = "a", .number = 0, .shape = Shape{0, 2}, .first_dims = {2, 0, 1}});
  bound.batch.tensors.push_back({.name = "b", .number = 0, .shape = Shape{0}, .first_dims = {1, 4, 0}});
  bound.bindings = {{.in = fake(0x1000), .out = fake(0x10000)}, {.in = fake(0x2000), .out = fake(0x20000)}};
  return bound;
}

TEST(Rows, lie_in_the_outputs_in_member_order_and_in_the_own_input) {
  const BoundBatch bound = gather_batch();
  const SpanList own = rows_of(bound, 1, 1);
  EXPECT_EQ(walk(own, {0, own.total()}, 1)[0], std::pair(uint64_t{0x2000}, uint64_t{0x20004}));
  EXPECT_EQ(own.total(), 4);
  const SpanList other = rows_of(bound, 2, 1);
  EXPECT_EQ(walk(other, {0, other.total()}, 9),
            (std::vector<std::pair<uint64_t, uint64_t>>{{0, 0x10010}, {0, 0x10014}}));
}

TEST(Rows, of_a_reducescatter_lie_in_the_inputs_in_member_order_and_in_the_own_output) {
  BoundBatch bound = gather_batch();
  bound.batch.op = OpKind::Reducescatter;
  bound.batch.tensors = {{.name = "a", .number = 0, .shape = Shape{4, 2}, .first_dims = {}},
                         {.name = "b", .number = 0, .shape = Shape{2}, .first_dims = {}}};
  const SpanList own = rows_of(bound, 1, 1);  // of the rows of a: 2, 1, 1; of b: 1, 1, 0
  EXPECT_EQ(walk(own, {0, own.total()}, 9),
            (std::vector<std::pair<uint64_t, uint64_t>>{{0x1010, 0x10000}, {0x1014, 0x10004}, {0x2004, 0x20000}}));
  const SpanList other = rows_of(bound, 2, 1);
  EXPECT_EQ(walk(other, {0, other.total()}, 9), (std::vector<std::pair<uint64_t, uint64_t>>{{0x1018, 0}, {0x101c, 0}}));
}

// Blocks and shares.

TEST(Blocks, cover_the_line_and_fit_into_slots) {
  for (const size_t slot_bytes : {size_t{4096}, size_t{262144}, size_t{1048576}}) {
    const transport::ArenaLayout layout{.ranks = 4, .slots = 4, .slot_bytes = slot_bytes};
    for (const size_t element : {size_t{1}, size_t{2}, size_t{4}, size_t{8}}) {
      for (const int64_t elements :
           {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{4096}, int64_t{65537}, int64_t{9999999}}) {
        const BlockPlan plan = plan_blocks(elements, element, 4, layout);
        EXPECT_LE(static_cast<size_t>(plan.block_elements) * element, slot_bytes);
        int64_t at = 0;
        for (uint64_t b = 0; b < plan.blocks; ++b) {
          EXPECT_EQ(plan.block(b).begin, at);
          EXPECT_GT(plan.block(b).count(), 0);
          at = plan.block(b).end;
        }
        EXPECT_EQ(at, elements);
        EXPECT_EQ(plan.blocks == 0, elements == 0);
      }
    }
  }
}

TEST(Blocks, are_direct_only_when_small_for_all_members_together) {
  const transport::ArenaLayout layout{.ranks = 8, .slots = 4, .slot_bytes = 262144};
  EXPECT_TRUE(plan_blocks(1, 4, 8, layout).direct);
  EXPECT_TRUE(plan_blocks(2048, 4, 2, layout).direct);
  EXPECT_FALSE(plan_blocks(2049, 4, 2, layout).direct);
  EXPECT_FALSE(plan_blocks(2048, 4, 8, layout).direct);
}

TEST(Blocks, of_medium_batches_are_finer_than_a_slot) {
  const transport::ArenaLayout layout{.ranks = 2, .slots = 4, .slot_bytes = 262144};
  EXPECT_GE(plan_blocks(65536, 4, 2, layout).blocks, 4U);
  EXPECT_EQ(plan_blocks(64 << 20, 1, 2, layout).block_elements, 262144);
}

TEST(Blocks, count_beyond_32_bits) {
  const transport::ArenaLayout layout{.ranks = 2, .slots = 4, .slot_bytes = 1 << 20};
  const int64_t elements = (int64_t{1} << 38) + 1;
  const BlockPlan plan = plan_blocks(elements, 8, 2, layout);
  EXPECT_EQ(plan.block(plan.blocks - 1).end, elements);
  EXPECT_EQ(plan.block(plan.blocks - 1).count(), 1);
}

TEST(Shares, cover_a_block_and_meet_at_cache_lines) {
  for (const size_t element : {size_t{1}, size_t{2}, size_t{4}, size_t{8}}) {
    for (const int64_t count : {1, 15, 16, 17, 64, 1000, 4096}) {
      for (size_t members = 1; members <= 8; ++members) {
        const Range block{100, 100 + count};
        int64_t at = block.begin;
        for (size_t i = 0; i < members; ++i) {
          const Range share = share_of(block, element, members, i);
          EXPECT_EQ(share.begin, at);
          if (share.end != block.end) {
            EXPECT_EQ((share.end - block.begin) * static_cast<int64_t>(element) % 64, 0);
          }
          at = share.end;
        }
        EXPECT_EQ(at, block.end);
      }
    }
  }
}

}  // namespace
}  // namespace ronde::collective
