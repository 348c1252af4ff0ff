// SPDX-License-Identifier: Apache-2.0
// Random ranks under random delivery, against a naive oracle: the n-th use of a name succeeds on all ranks if all asked
// for the same thing, and fails on all of them otherwise; and all ranks run the same batches in the same order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "coord/test_cluster.h"

namespace ronde::coord {
namespace {

constexpr int kNames = 6;
constexpr int kUses = 6;  // of each name, by each rank

std::string name_of_number(int number) {
  return cat("tensor ", number);
}

// Each rank uses each name kUses times, now and then with a wrong shape, in whatever order the dice give.
class Script {
 public:
  Script(Rank ranks, bool with_errors, std::mt19937_64& random)
      : ranks_(static_cast<size_t>(ranks)), next_use_(ranks_), is_wrong_(ranks_) {
    for (auto& names : is_wrong_) {
      for (auto& uses : names) {
        for (bool& is_wrong : uses) is_wrong = with_errors && random() % 12 == 0;
      }
    }
  }
  // Agreed: all right or all wrong.
  bool succeeds(const std::string& name, int use) const {
    size_t wrong = 0;
    for (const auto& names : is_wrong_) wrong += names[number_of(name)][static_cast<size_t>(use)] ? 1 : 0;
    return wrong == 0 || wrong == ranks_;
  }
  bool has_next(Rank rank, int name) const { return use(rank, name) < kUses; }
  Request next(Rank rank, int name) const {
    const size_t at = static_cast<size_t>(use(rank, name));
    const bool is_wrong = is_wrong_[static_cast<size_t>(rank)][static_cast<size_t>(name)][at];
    return allreduce(name_of_number(name), Shape{use(rank, name) + 1, is_wrong ? 2 : 1});
  }
  void advance(Rank rank, int name) { ++next_use_[static_cast<size_t>(rank)][static_cast<size_t>(name)]; }
  bool is_over() const {
    return std::all_of(next_use_.begin(), next_use_.end(), [](const auto& names) {
      return std::all_of(names.begin(), names.end(), [](int use) { return use == kUses; });
    });
  }

 private:
  static size_t number_of(const std::string& name) {
    for (int number = 0; number < kNames; ++number) {
      if (name_of_number(number) == name) return static_cast<size_t>(number);
    }
    ADD_FAILURE() << "no operation has the name " << name;
    return 0;
  }
  int use(Rank rank, int name) const { return next_use_[static_cast<size_t>(rank)][static_cast<size_t>(name)]; }

  size_t ranks_;
  std::vector<std::array<int, kNames>> next_use_;
  std::vector<std::array<std::array<bool, kUses>, kNames>> is_wrong_;
};

// One random thing happens.
void stir(TestCluster& cluster, Script& script, std::mt19937_64& random) {
  const Rank rank = static_cast<Rank>(random() % static_cast<uint64_t>(cluster.size()));
  switch (random() % 8) {
    case 0:
    case 1:
    case 2: {
      const int name = static_cast<int>(random() % kNames);
      if (!script.has_next(rank, name)) return;
      if (cluster.try_submit(rank, {script.next(rank, name)}, random() % 2 == 0).ok()) {
        script.advance(rank, name);
      } else if (random() % 4 == 0) {
        // The name is in flight: the rank waits for it, and waiting flushes.
        cluster.member(rank).flush();
      }
      return;
    }
    case 3:
      return cluster.send(rank);
    case 4:
      (void)cluster.arrive(rank);
      return;
    case 5:
      return cluster.decide();
    case 6:
      (void)cluster.hear(rank);
      return;
    default:
      return cluster.advance(std::chrono::milliseconds(random() % 3));
  }
}

void expect_as_the_oracle(TestCluster& cluster, Script& script) {
  std::map<std::string, std::vector<std::vector<uint64_t>>> batch_of;  // name → rank → use → batch
  for (Rank rank = 0; rank < cluster.size(); ++rank) {
    std::map<std::string, int> use_of;
    for (const auto& one : cluster.told(rank)) {
      const int use = use_of[one.name]++;
      EXPECT_EQ(one.status.ok(), script.succeeds(one.name, use)) << one.name << " use " << use << " on rank " << rank;
      batch_of[one.name].resize(static_cast<size_t>(cluster.size()));
      batch_of[one.name][static_cast<size_t>(rank)].push_back(one.batch);
    }
    for (const auto& [name, uses] : use_of) EXPECT_EQ(uses, kUses) << name;
    EXPECT_EQ(cluster.member(rank).in_flight(), 0u);
  }
  for (const auto& [name, of_rank] : batch_of) {
    for (const auto& batches : of_rank) EXPECT_EQ(batches, of_rank[0]) << name;
  }
  EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
}

class Orders : public testing::TestWithParam<std::tuple<Rank, bool, bool>> {};

TEST_P(Orders, agree_with_the_oracle_for_every_seed) {
  const auto [ranks, with_errors, cut_early] = GetParam();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    std::mt19937_64 random(seed * 977 + static_cast<uint64_t>(ranks));
    TestCluster cluster(ranks, {.cut_early = cut_early, .batch_bytes = 64});
    Script script(ranks, with_errors, random);
    for (int i = 0; i < 200'000 && !script.is_over(); ++i) stir(cluster, script, random);
    ASSERT_TRUE(script.is_over()) << "the ranks wait for each other";
    for (Rank rank = 0; rank < ranks; ++rank) cluster.member(rank).flush();
    cluster.run();
    expect_as_the_oracle(cluster, script);
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Orders,
                         testing::Combine(testing::Values(1, 2, 3, 5), testing::Bool(), testing::Bool()));

TEST(Orders, a_rank_that_leaves_at_a_random_moment_leaves_nobody_waiting) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    std::mt19937_64 random(seed);
    TestCluster cluster(3, {.cut_early = seed % 2 == 0});
    Script script(3, seed % 3 == 0, random);
    for (uint64_t i = 0; i < seed * 3; ++i) stir(cluster, script, random);
    cluster.member(1).leave();
    for (int i = 0; i < 20; ++i) stir(cluster, script, random);
    for (Rank rank = 0; rank < 3; ++rank) cluster.member(rank).flush();
    cluster.run();
    for (Rank rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(cluster.member(rank).in_flight(), 0u);
      EXPECT_EQ(cluster.lefts(rank), std::vector<Rank>{1});
    }
    // Batches are the same everywhere, up to the end.
    EXPECT_EQ(cluster.batches(0).size(), cluster.batches(2).size());
    EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
  }
}

// Rounds of groups that all contain 'x' and otherwise what the dice give: a round succeeds everywhere if all ranks
// made the same call, and fails everywhere otherwise; no round disturbs another, however far ahead some ranks are.
TEST(Orders, groups_pair_up_round_by_round_whatever_they_name) {
  constexpr size_t kRounds = 12;
  const std::vector<std::string> others{"u", "v", "w", "y", "z"};
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto ranks = static_cast<Rank>(2 + seed % 4);
    TestCluster cluster(ranks);
    const auto any_group = [&] {
      std::vector<std::string> out = others;
      std::shuffle(out.begin(), out.end(), random);
      out.resize(1 + random() % out.size());
      out.insert(out.begin() + static_cast<ptrdiff_t>(random() % (out.size() + 1)), "x");
      return out;
    };
    std::vector<std::vector<std::vector<std::string>>> rounds(kRounds);  // round → rank → names
    std::vector<bool> agreed(kRounds);
    for (size_t round = 0; round < kRounds; ++round) {
      rounds[round].assign(static_cast<size_t>(ranks), any_group());
      for (auto& names : rounds[round]) {
        if (random() % 4 == 0) names = any_group();
      }
      agreed[round] = std::all_of(rounds[round].begin(), rounds[round].end(),
                                  [&](const auto& names) { return names == rounds[round][0]; });
    }
    std::vector<size_t> next(static_cast<size_t>(ranks));
    std::vector<std::vector<bool>> succeeded(static_cast<size_t>(ranks));
    const auto is_over = [&] { return std::all_of(next.begin(), next.end(), [](size_t n) { return n == kRounds; }); };
    for (int i = 0; i < 20'000 && !is_over(); ++i) {
      const auto rank = static_cast<Rank>(random() % static_cast<uint64_t>(ranks));
      const auto r = static_cast<size_t>(rank);
      cluster.run(rank);
      if (cluster.member(rank).in_flight() > 0) continue;
      const auto told = cluster.told(rank);
      if (!told.empty()) {
        succeeded[r].push_back(told[0].status.ok());
        for (const auto& one : told) EXPECT_EQ(one.status.ok(), told[0].status.ok());
        EXPECT_EQ(told.size(), rounds[next[r]][r].size());
        ++next[r];
      }
      if (next[r] == kRounds) continue;
      std::vector<Request> call;
      for (const std::string& name : rounds[next[r]][r]) call.push_back(allreduce(name));
      cluster.submit(rank, call);
    }
    ASSERT_TRUE(is_over()) << "a call waits for ever";
    for (const auto& of_rank : succeeded) EXPECT_EQ(of_rank, agreed);
    EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
    if (testing::Test::HasFailure()) return;
  }
}

// Ranks that do anything at all: every operation ends by its deadline at the latest, once, and members accept every
// decision.
TEST(Orders, wild_calls_all_end) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    std::mt19937_64 random(seed + 5000);
    TestCluster cluster(3, {.cut_early = seed % 2 == 0, .collective_timeout = std::chrono::milliseconds(40)});
    for (int i = 0; i < 400; ++i) {
      const auto rank = static_cast<Rank>(random() % 3);
      std::vector<Request> call;
      for (uint64_t count = 1 + random() % 3 * (random() % 2); count > 0; --count) {
        const std::string name = random() % 4 == 0 ? "" : cat("n", random() % 5);
        call.push_back(random() % 3 == 0 ? allgather(name, static_cast<int64_t>(random() % 3)) : allreduce(name));
      }
      (void)cluster.try_submit(rank, call, random() % 3 == 0);
      switch (random() % 6) {
        case 0:
          cluster.member(rank).flush();
          break;
        case 1:
          cluster.run(rank);
          break;
        case 2:
          cluster.advance(std::chrono::milliseconds(random() % 20));
          break;
        default:
          cluster.send(rank);
          (void)cluster.arrive(static_cast<Rank>(random() % 3));
          cluster.decide();
          (void)cluster.hear(static_cast<Rank>(random() % 3));
      }
    }
    for (Rank rank = 0; rank < 3; ++rank) cluster.member(rank).flush();
    cluster.run();
    cluster.advance(std::chrono::milliseconds(40));
    for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.member(rank).in_flight(), 0u);
    EXPECT_EQ(cluster.batches(0).size(), cluster.batches(2).size());
    EXPECT_EQ(cluster.coordinator().next_deadline(), kNever);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace ronde::coord
