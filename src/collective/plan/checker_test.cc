// SPDX-License-Identifier: Apache-2.0
#include "collective/plan/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace ronde::collective {
namespace {

constexpr int kMaxSize = 17;

TEST(Plans, keep_their_promise_for_every_size_and_root) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int size = 1; size <= kMaxSize; ++size) {
      for (int root = 0; root < size; ++root) {
        const Status status = check(algorithm.promise, plan_all(algorithm, size, root), root);
        ASSERT_TRUE(status.ok()) << algorithm.name << " of " << size << ", root " << root << ": " << status.message();
      }
    }
  }
}

int sends_of(const Schedule& schedule) {
  return static_cast<int>(std::ranges::count_if(schedule.rounds, [](const Round& r) { return r.send_to != kNobody; }));
}

TEST(Plans, send_as_few_chunks_as_their_files_say) {
  for (int size = 1; size <= kMaxSize; ++size) {
    for (int index = 0; index < size; ++index) {
      EXPECT_EQ(sends_of(ring_allreduce(index, size, 0)), 2 * (size - 1));
      EXPECT_EQ(sends_of(ring_allgather(index, size, 0)), size - 1);
      EXPECT_EQ(sends_of(ring_barrier(index, size, 0)), size - 1);
      EXPECT_EQ(sends_of(pairwise_reducescatter(index, size, 0)), size - 1);
      const bool is_last = index == size - 1;
      EXPECT_EQ(sends_of(ring_broadcast(index, size, 0)), is_last ? 0 : size);
    }
  }
}

TEST(Plans, of_rings_talk_to_ring_neighbours_only) {
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.name.starts_with("ring")) continue;
    for (int size = 2; size <= kMaxSize; ++size) {
      for (int index = 0; index < size; ++index) {
        for (const Round& round : algorithm.plan(index, size, size / 2).rounds) {
          EXPECT_THAT(round.send_to, testing::AnyOf(kNobody, (index + 1) % size));
          EXPECT_THAT(round.recv_from, testing::AnyOf(kNobody, (index + size - 1) % size));
        }
      }
    }
  }
}

TEST(Plans, have_names_of_their_own) {
  for (const Algorithm& a : algorithms())
    for (const Algorithm& b : algorithms()) EXPECT_EQ(a.name == b.name, &a == &b);
}

// Mutations: a plan that is broken in one place is refused, whatever the place.
using Mutation = std::function<bool(std::vector<Schedule>& all, int member, size_t round)>;  // false: changed nothing

void every_mutation_is_refused(const Mutation& mutate) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int size = 2; size <= 6; ++size) {
      const int root = size / 2;
      const auto good = plan_all(algorithm, size, root);
      for (int member = 0; member < size; ++member) {
        for (size_t round = 0; round < good[0].rounds.size(); ++round) {
          auto broken = good;
          if (!mutate(broken, member, round)) continue;
          EXPECT_FALSE(check(algorithm.promise, broken, root).ok())
              << algorithm.name << " of " << size << ", member " << member << ", round " << round;
        }
      }
    }
  }
}

TEST(Checker, refuses_a_dropped_round) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& rounds = all[member].rounds;
    rounds.erase(rounds.begin() + static_cast<ptrdiff_t>(round));
    return true;
  });
}

TEST(Checker, refuses_a_round_replaced_by_a_pause_at_the_end) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& rounds = all[member].rounds;
    const bool idle = rounds[round] == Round{};
    rounds.erase(rounds.begin() + static_cast<ptrdiff_t>(round));
    rounds.push_back({});
    return !idle;
  });
}

TEST(Checker, refuses_a_doubled_round) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& rounds = all[member].rounds;
    rounds.insert(rounds.begin() + static_cast<ptrdiff_t>(round), Round(rounds[round]));
    return true;
  });
}

TEST(Checker, refuses_two_rounds_swapped_at_one_member) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& rounds = all[member].rounds;
    if (round + 1 == rounds.size() || rounds[round] == rounds[round + 1]) return false;
    std::swap(rounds[round], rounds[round + 1]);
    return true;
  });
}

TEST(Checker, refuses_a_round_that_everybody_dropped) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    for (auto& schedule : all) schedule.rounds.erase(schedule.rounds.begin() + static_cast<ptrdiff_t>(round));
    return member == 0;
  });
}

TEST(Checker, refuses_an_emptied_send_or_receive) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& r = all[member].rounds[round];
    return std::exchange(r.send_to, kNobody) != kNobody;
  });
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& r = all[member].rounds[round];
    return std::exchange(r.recv_from, kNobody) != kNobody;
  });
}

TEST(Checker, refuses_another_chunk) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& r = all[member].rounds[round];
    r.send_chunk = (r.send_chunk + 1) % all[member].chunks;
    return r.send_to != kNobody;
  });
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& r = all[member].rounds[round];
    r.recv_chunk = (r.recv_chunk + 1) % all[member].chunks;
    return r.recv_from != kNobody;
  });
}

TEST(Checker, refuses_the_same_wrong_chunk_on_both_sides) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& send = all[member].rounds[round];
    if (send.send_to == kNobody) return false;
    auto& receive = all[send.send_to].rounds[round];
    send.send_chunk = receive.recv_chunk = (send.send_chunk + 1) % all[member].chunks;
    return true;
  });
}

TEST(Checker, refuses_copy_for_reduce_and_reduce_for_copy) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& r = all[member].rounds[round];
    r.on_receive = r.on_receive == OnReceive::Copy ? OnReceive::Reduce : OnReceive::Copy;
    return r.recv_from != kNobody;
  });
}

TEST(Checker, refuses_a_finish_that_is_missing_or_misplaced) {
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    return std::exchange(all[member].rounds[round].finish_chunk, -1) != -1;
  });
  every_mutation_is_refused([](auto& all, int member, size_t round) {
    auto& r = all[member].rounds[round];
    return std::exchange(r.finish_chunk, r.recv_chunk) != r.recv_chunk;
  });
}

TEST(Checker, refuses_peers_and_chunks_out_of_range) {
  const auto broken = [](int Round::*field, int value) {
    auto all = plan_all(kRingAllreduce, 3, 0);
    all[1].rounds[2].*field = value;
    return !check(Promise::SumEverywhere, all, 0).ok();
  };
  EXPECT_TRUE(broken(&Round::send_to, 3));
  EXPECT_TRUE(broken(&Round::send_to, -2));
  EXPECT_TRUE(broken(&Round::recv_from, 1)) << "from itself";
  EXPECT_TRUE(broken(&Round::send_chunk, 3));
  EXPECT_TRUE(broken(&Round::recv_chunk, -1));
}

TEST(Checker, names_member_round_and_chunk) {
  auto all = plan_all(kRingAllgather, 4, 0);
  all[2].rounds[1].send_chunk = 2;
  EXPECT_THAT(check(Promise::GatherEverywhere, all, 0).message(),
              testing::HasSubstr("member 2, round 1: sends chunk 2 where member 3 receives 1"));
}

// Both send first and receive a round later: only buffers that nobody promised would save them.
TEST(Checker, finds_a_deadlock_that_needs_rendezvous_to_show) {
  std::vector<Schedule> all(2);
  for (int i = 0; i < 2; ++i) {
    all[i].chunks = 2;
    all[i].rounds = {{.send_to = 1 - i, .send_chunk = i}, {.recv_from = 1 - i, .recv_chunk = 1 - i}};
  }
  EXPECT_THAT(check(Promise::GatherEverywhere, all, 0).message(), testing::HasSubstr("waits for ever"));
}

}  // namespace
}  // namespace ronde::collective
