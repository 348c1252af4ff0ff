// SPDX-License-Identifier: Apache-2.0
#include "collective/run/slot_writer.h"

#include <gtest/gtest.h>

#include <vector>

namespace ronde::collective {
namespace {

// Runs so many blocks where the two ways cost this much.
void run(StoreChoice& choice, int blocks, double cached, double streamed) {
  for (int i = 0; i < blocks; ++i) {
    const Store store = choice.next();
    choice.tell(store, store == Store::Cached ? cached : streamed);
  }
}

TEST(StoreChoice, is_the_cache_before_anything_is_known) {
  StoreChoice choice;
  EXPECT_EQ(choice.best(), Store::Cached);
  choice.tell(Store::Cached, 100);
  EXPECT_EQ(choice.best(), Store::Cached);
}

TEST(StoreChoice, tries_both_ways_first) {
  StoreChoice choice;
  EXPECT_EQ(choice.next(), Store::Cached);
  choice.tell(Store::Cached, 1);
  EXPECT_EQ(choice.next(), Store::Streamed);
}

TEST(StoreChoice, streams_only_where_that_is_much_faster) {
  StoreChoice near;
  run(near, 100, 1.5, 1);
  EXPECT_EQ(near.best(), Store::Cached);
  StoreChoice far;
  run(far, 100, 4, 1);
  EXPECT_EQ(far.best(), Store::Streamed);
}

TEST(StoreChoice, follows_a_process_that_is_moved) {
  StoreChoice choice;
  run(choice, 100, 1, 1);
  run(choice, 10, 4, 1);
  EXPECT_EQ(choice.best(), Store::Streamed);
  run(choice, 200, 1, 1);
  EXPECT_EQ(choice.best(), Store::Cached);
}

TEST(StoreChoice, is_not_changed_by_one_interruption) {
  StoreChoice choice;
  run(choice, 100, 1, 1);
  choice.tell(Store::Cached, 1e6);
  EXPECT_EQ(choice.best(), Store::Cached);
}

TEST(StoreChoice, probes_seldom) {
  StoreChoice choice;
  run(choice, 10, 1, 1);
  int streamed = 0;
  for (int i = 0; i < 160; ++i) {
    const Store store = choice.next();
    streamed += store == Store::Streamed;
    choice.tell(store, 1);
  }
  EXPECT_EQ(streamed, 10);
}

TEST(SlotWriter, writes_the_same_bytes_in_either_way) {
  SlotWriter writer;
  std::vector<std::byte> from(20'000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31);
  for (int block = 0; block < 40; ++block) {
    writer.begin_block();
    std::vector<std::byte> slot(2 * from.size());
    writer.write(slot.data(), from.data(), from.size());
    writer.write_near(slot.data() + from.size(), from.data(), from.size());
    EXPECT_TRUE(std::equal(from.begin(), from.end(), slot.begin()));
    EXPECT_TRUE(std::equal(from.begin(), from.end(), slot.begin() + static_cast<ptrdiff_t>(from.size())));
  }
}

}  // namespace
}  // namespace ronde::collective
