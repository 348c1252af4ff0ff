// SPDX-License-Identifier: Apache-2.0
#include "control/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "control/board_memory.h"
#include "os/event_set.h"
#include "os/region.h"

namespace ronde::control {
namespace {

using ::testing::HasSubstr;

struct Host {
  explicit Host(int size) : memory(os::Region::create_heap(Board::bytes(size)).value()) {
    for (int rank = 0; rank < size; ++rank) {
      bells.push_back({os::Doorbell::create().value(), os::Doorbell::create().value()});
    }
    for (int seat = 0; seat <= size; ++seat) boards.emplace_back(memory.data(), size, seat, &bells);
  }
  Board& agent() { return boards.back(); }
  BoardMemory& raw() { return *reinterpret_cast<BoardMemory*>(memory.data()); }
  bool rings(int rank, int which) {
    const auto& bell = bells[static_cast<size_t>(rank)][static_cast<size_t>(which)];
    const int fd = bell.fd();
    const bool rung = os::sleep_until_readable({&fd, 1}, Time());
    bell.drain();
    return rung;
  }
  os::Region memory;
  Bells bells;
  std::vector<Board> boards;  // by seat
};

TEST(Board, zeroed_memory_is_an_empty_board) {
  Host host(3);
  for (auto& board : host.boards) {
    EXPECT_FALSE(board.aborted());
    EXPECT_TRUE(board.abort_cause().ok());
    EXPECT_EQ(board.local_size(), 3);
  }
  EXPECT_EQ(host.boards[1].last_beat(2), Time());
  const int all[] = {0, 1, 2};
  EXPECT_FALSE(host.boards[0].all_in_wait(all));
}

TEST(Board, the_memory_is_a_multiple_of_a_page_and_grows_with_the_ranks) {
  for (int size = 1; size < 9; ++size) {
    EXPECT_EQ(Board::bytes(size) % 4096, 0u);
    EXPECT_GT(Board::bytes(size + 1), Board::bytes(size) + 2 * kRingBytes);
  }
}

TEST(Board, a_sleeper_is_rung_once_on_the_bell_that_it_names) {
  Host host(2);
  const int one = 1;
  host.boards[0].wake({&one, 1});
  EXPECT_FALSE(host.rings(1, 0) || host.rings(1, 1)) << "an awake rank is not rung";
  for (const int which : {0, 1}) {
    host.boards[1].set_sleeping(which == 0 ? Sleeping::OnLoopBell : Sleeping::OnWaiterBell);
    host.boards[0].wake({&one, 1});
    EXPECT_TRUE(host.rings(1, which));
    EXPECT_FALSE(host.rings(1, 1 - which));
    host.boards[0].wake({&one, 1});
    EXPECT_FALSE(host.rings(1, which)) << "it was rung already";
  }
}

TEST(Board, wake_all_rings_every_sleeper_and_no_other) {
  Host host(3);
  host.boards[0].set_sleeping(Sleeping::OnLoopBell);
  host.boards[2].set_sleeping(Sleeping::OnWaiterBell);
  host.agent().wake_all();
  EXPECT_TRUE(host.rings(0, 0));
  EXPECT_FALSE(host.rings(1, 0) || host.rings(1, 1));
  EXPECT_TRUE(host.rings(2, 1));
}

TEST(Board, a_sleeping_word_without_sense_rings_nobody) {
  Host host(1);
  host.raw().seat(0).sleeping = 77;
  host.agent().wake_all();
  EXPECT_FALSE(host.rings(0, 0) || host.rings(0, 1));
}

TEST(Board, all_in_wait_asks_those_that_are_named) {
  Host host(3);
  host.boards[0].set_in_wait(true);
  host.boards[2].set_in_wait(true);
  const int two[] = {0, 2};
  const int three[] = {0, 1, 2};
  EXPECT_TRUE(host.boards[1].all_in_wait(two));
  EXPECT_FALSE(host.boards[1].all_in_wait(three));
  host.boards[2].set_in_wait(false);
  EXPECT_FALSE(host.boards[1].all_in_wait(two));
}

TEST(Board, a_beat_is_seen_by_the_others) {
  Host host(2);
  const Time now = SteadyClock().now();
  host.boards[1].beat(now);
  EXPECT_EQ(host.boards[0].last_beat(1), now);
}

TEST(Board, the_first_cause_wins_and_wakes_everybody) {
  Host host(2);
  host.boards[0].set_sleeping(Sleeping::OnLoopBell);
  host.boards[1].set_sleeping(Sleeping::OnWaiterBell);
  host.agent().abort(Status(Code::PeerLost, "rank 1 was killed by signal 9"));
  EXPECT_TRUE(host.rings(0, 0));
  EXPECT_TRUE(host.rings(1, 1));
  host.boards[1].abort(Status(Code::Timeout, "second"));
  host.agent().abort(Status(Code::Timeout, "third"));
  for (auto& board : host.boards) {
    EXPECT_TRUE(board.aborted());
    EXPECT_EQ(board.abort_cause().code(), Code::PeerLost);
    EXPECT_EQ(board.abort_cause().message(), "rank 1 was killed by signal 9");
  }
}

TEST(Board, a_rank_that_dies_while_it_writes_its_cause_does_not_silence_the_others) {
  Host host(2);
  host.raw().seat(0).cause.taken = 1;
  host.boards[1].abort(Status(Code::PeerLost, "rank 0 died"));
  EXPECT_EQ(host.boards[1].abort_cause().message(), "rank 0 died");
}

TEST(Board, a_long_cause_is_cut) {
  Host host(1);
  host.boards[0].abort(Status(Code::Aborted, std::string(1 << 20, 'x')));
  EXPECT_EQ(host.agent().abort_cause().message(), std::string(kMaxCauseBytes, 'x'));
}

TEST(Board, a_damaged_cause_is_an_error_and_no_crash) {
  const auto damage = [](auto change) {
    Host host(2);
    host.boards[0].abort(Status(Code::PeerLost, "x"));
    change(host.raw());
    EXPECT_TRUE(host.boards[1].aborted());
    EXPECT_EQ(host.boards[1].abort_cause().code(), Code::Aborted);
    EXPECT_THAT(host.boards[1].abort_cause().message(), HasSubstr("damaged"));
  };
  damage([](BoardMemory& board) { board.abort = 4; });
  damage([](BoardMemory& board) { board.abort = 0xffffffff; });
  damage([](BoardMemory& board) { board.seat(0).cause.code = 0; });
  damage([](BoardMemory& board) { board.seat(0).cause.code = 200; });
  damage([](BoardMemory& board) { board.seat(0).cause.text_bytes = 0xffffffff; });
}

TEST(Board, racing_causes_leave_one_that_all_agree_on) {
  for (int round = 0; round < 50; ++round) {
    Host host(4);
    std::vector<std::string> seen(5);
    std::vector<std::thread> threads;
    for (size_t seat = 0; seat < 5; ++seat) {
      threads.emplace_back([&, seat] {
        host.boards[seat].abort(Status(Code::PeerLost, cat("cause of ", seat)));
        seen[seat] = host.boards[seat].abort_cause().message();
      });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& text : seen) EXPECT_EQ(text, seen[0]);
    EXPECT_THAT(seen[0], HasSubstr("cause of "));
  }
}

// A consumer that sleeps by the rules and a producer that rings by the rules, as often as possible.
TEST(Board, no_wake_up_is_lost) {
  constexpr uint64_t kTurns = 20000;
  Host host(2);
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> used{0};
  std::thread producer([&] {
    const int one = 1;
    for (uint64_t turn = 1; turn <= kTurns; ++turn) {
      made.store(turn);
      host.boards[0].wake({&one, 1});
      while (turn % 64 == 0 && used.load() < turn) std::this_thread::yield();  // let it fall asleep now and then
    }
  });
  const auto& bell = host.bells[1][0];
  const int fd = bell.fd();
  while (used.load() < kTurns) {
    if (made.load() == used.load()) {
      host.boards[1].set_sleeping(Sleeping::OnLoopBell);
      if (made.load() == used.load()) {
        ASSERT_TRUE(os::sleep_until_readable({&fd, 1}, SteadyClock().now() + std::chrono::seconds(60))) << "lost";
        bell.drain();
      }
      host.boards[1].set_sleeping(Sleeping::Awake);
    }
    used.store(made.load());
  }
  producer.join();
}

TEST(Board, rings_of_different_ranks_are_apart) {
  Host host(3);
  std::vector<std::unique_ptr<Carrier>> coordinator;
  std::vector<std::unique_ptr<Carrier>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    coordinator.push_back(host.boards[0].coordinator_side(rank));
    ranks.push_back(host.boards[static_cast<size_t>(rank)].rank_side(0));
  }
  for (size_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(*ranks[rank]->try_send(Bytes(1, static_cast<std::byte>(rank))));
    ASSERT_TRUE(*coordinator[rank]->try_send(Bytes(1, static_cast<std::byte>(10 + rank))));
  }
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(**coordinator[rank]->try_recv(), Bytes(1, static_cast<std::byte>(rank)));
    EXPECT_EQ(**ranks[rank]->try_recv(), Bytes(1, static_cast<std::byte>(10 + rank)));
    EXPECT_FALSE(coordinator[rank]->try_recv()->has_value());
  }
}

TEST(Board, a_frame_rings_the_peer_and_room_rings_the_writer) {
  Host host(2);
  const auto coordinator = host.boards[0].coordinator_side(1);
  const auto rank = host.boards[1].rank_side(0);
  host.boards[0].set_sleeping(Sleeping::OnLoopBell);
  ASSERT_TRUE(*rank->try_send(Bytes(1000)));
  EXPECT_TRUE(host.rings(0, 0));
  while (*rank->try_send(Bytes(1000))) {
  }
  host.boards[1].set_sleeping(Sleeping::OnWaiterBell);
  ASSERT_TRUE(coordinator->try_recv()->has_value());
  EXPECT_TRUE(host.rings(1, 1));
  host.boards[1].set_sleeping(Sleeping::OnWaiterBell);
  ASSERT_TRUE(coordinator->try_recv()->has_value());
  EXPECT_FALSE(host.rings(1, 1)) << "it did not ask again";
}

struct Ring {
  std::unique_ptr<RingMemory> memory = std::make_unique<RingMemory>();
  RingWriter writer{memory.get()};
  RingReader reader{memory.get()};
};

TEST(Ring, counters_and_lengths_without_sense_are_errors) {
  for (const uint64_t written : {uint64_t{1}, uint64_t{3}, uint64_t{kRingBytes + 1}, ~uint64_t{0}}) {
    Ring ring;
    ring.memory->written = written;
    EXPECT_EQ(ring.reader.take().status().code(), Code::Internal) << written;
  }
  for (const uint32_t length : {uint32_t{2}, uint32_t{kMaxFrameBytes + 1}, ~uint32_t{0}}) {
    Ring ring;
    ASSERT_TRUE(*ring.writer.put(Bytes(1)));
    std::memcpy(ring.memory->data, &length, sizeof length);
    EXPECT_THAT(ring.reader.take().status().message(), HasSubstr(cat("length of a frame is ", length)));
  }
  Ring ring;
  ring.memory->read = 1;
  EXPECT_EQ(ring.writer.put(Bytes(1)).status().code(), Code::Internal);
}

TEST(Ring, random_damage_never_leads_outside) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Ring ring;
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(*ring.writer.put(Bytes(random() % 3000)));
    for (int i = 0; i < 200; ++i) ring.memory->data[random() % 30000] = static_cast<std::byte>(random());
    ring.memory->written = random() % (2 * kRingBytes);
    for (int i = 0; i < 40 && ring.reader.take().ok(); ++i) {
    }
  }
}

TEST(Ring, frames_survive_any_place_of_the_end_of_the_ring) {
  Ring ring;
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    Bytes frame(random() % 1500, static_cast<std::byte>(i));
    ASSERT_TRUE(*ring.writer.put(frame));
    ASSERT_EQ(**ring.reader.take(), frame);
  }
}

TEST(Ring, a_reader_and_a_writer_made_later_go_on_where_the_old_ones_ended) {
  Ring ring;
  ASSERT_TRUE(*ring.writer.put(Bytes(5)));
  RingWriter writer(ring.memory.get());
  RingReader reader(ring.memory.get());
  ASSERT_TRUE(*writer.put(Bytes(6)));
  EXPECT_EQ(reader.take()->value().size(), 5u);
  EXPECT_EQ(RingReader(ring.memory.get()).take()->value().size(), 6u);
}

}  // namespace
}  // namespace ronde::control
