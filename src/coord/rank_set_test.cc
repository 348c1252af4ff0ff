// SPDX-License-Identifier: Apache-2.0
#include "coord/rank_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace ronde::coord {
namespace {

TEST(RankSet, behaves_like_a_set_below_and_above_64_ranks) {
  std::mt19937 random(3);
  RankSet ours;
  std::set<Rank> oracle;
  for (int i = 0; i < 5000; ++i) {
    const Rank rank = static_cast<Rank>(random() % 200);
    if (random() % 2 == 0) {
      EXPECT_EQ(ours.add(rank), oracle.insert(rank).second);
    } else {
      EXPECT_EQ(ours.remove(rank), oracle.erase(rank) == 1);
    }
    EXPECT_EQ(ours.has(rank), oracle.contains(rank));
    EXPECT_EQ(ours.count(), oracle.size());
  }
  EXPECT_EQ(ours.ranks(), std::vector<Rank>(oracle.begin(), oracle.end()));
}

TEST(RankSet, a_set_covers_its_parts_only) {
  const RankSet all({0, 5, 63, 64, 130});
  EXPECT_TRUE(all.covers(all));
  EXPECT_TRUE(all.covers(RankSet({5, 130})));
  EXPECT_TRUE(all.covers(RankSet()));
  EXPECT_FALSE(all.covers(RankSet({1})));
  EXPECT_FALSE(RankSet({0}).covers(all));
  EXPECT_FALSE(all.covers(RankSet({500})));
}

TEST(RankSet, sets_join) {
  RankSet a({1, 70});
  a.add_all(RankSet({2, 200}));
  EXPECT_EQ(a.ranks(), (std::vector<Rank>{1, 2, 70, 200}));
  a.clear();
  EXPECT_TRUE(a.empty());
}

}  // namespace
}  // namespace ronde::coord
