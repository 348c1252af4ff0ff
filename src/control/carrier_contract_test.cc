// SPDX-License-Identifier: Apache-2.0
// What every Carrier promises. A carrier joins by one row in kRows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

#include "control/board.h"
#include "control/tcp_carrier.h"
#include "member/greeter.h"
#include "os/event_set.h"
#include "os/region.h"

namespace ronde::control {
namespace {

using ::testing::HasSubstr;
constexpr Duration kPatience = std::chrono::seconds(60);

Time soon() {
  return SteadyClock().now() + kPatience;
}

// Both ends, and how each end's owner sleeps until something may have changed. wait() of one end is for one thread.
class Ends {
 public:
  virtual ~Ends() = default;
  virtual void wait(int end) = 0;
  // The peer of end 0 goes; afterwards end 0 must say so, with the text that is returned.
  virtual std::string lose_peer() = 0;
  std::unique_ptr<Carrier> ends[2];
};

class BoardEnds final : public Ends {
 public:
  BoardEnds() : memory_(os::Region::create_heap(Board::bytes(2)).value()) {
    for (int rank = 0; rank < 2; ++rank) {
      bells_.push_back({os::Doorbell::create().value(), os::Doorbell::create().value()});
    }
    for (int rank = 0; rank < 2; ++rank) boards_.emplace_back(memory_.data(), 2, rank, &bells_);
    ends[0] = boards_[0].coordinator_side(1);
    ends[1] = boards_[1].rank_side(0);
  }
  // A whole turn of the consumer: sleeping, one more look, sleep. The look is the caller's next try, so the bell is
  // only waited for if the other has not moved since; it rings whoever is asleep, so nothing is missed.
  void wait(int end) override {
    const auto index = static_cast<size_t>(end);
    const int fd = bells_[index][0].fd();
    if (!asleep_[index]) {
      boards_[index].set_sleeping(Sleeping::OnLoopBell);
      asleep_[index] = true;
      return;
    }
    EXPECT_TRUE(os::sleep_until_readable({&fd, 1}, soon())) << "a wake-up was lost";
    bells_[index][0].drain();
    boards_[index].set_sleeping(Sleeping::Awake);
    asleep_[index] = false;
  }
  std::string lose_peer() override {
    boards_[1].abort(Status(Code::PeerLost, "rank 1 (pid 17) was killed by signal 9"));
    return "rank 1 (pid 17)";
  }

 private:
  os::Region memory_;
  Bells bells_;
  std::vector<Board> boards_;
  bool asleep_[2] = {false, false};
};

class TcpEnds final : public Ends {
 public:
  TcpEnds() {
    const auto listener = os::listen_tcp({"127.0.0.1", 0});
    auto a = os::connect_tcp_by({&listener->bound, 1}, soon());
    const int raw = listener->fd.get();
    os::sleep_until_readable({&raw, 1}, soon());
    auto b = os::accept_now(listener->fd);
    const auto session = member::random_key();
    os::Fd fds[2] = {std::move(a).value(), std::move(b).value()};
    for (int end = 0; end < 2; ++end) {
      events_.push_back(std::make_unique<os::EventSet>(os::EventSet::create().value()));
      ends[end] =
          make_tcp_carrier({std::move(fds[end]), {}, session}, end == 0, cat("rank ", 1 - end), events_.back().get())
              .value();
    }
  }
  ~TcpEnds() override {
    for (auto& end : ends) end.reset();
  }
  void wait(int end) override {
    auto& events = *events_[static_cast<size_t>(end)];
    if (events.collect() > 0) return;
    const int fd = events.fd();
    EXPECT_TRUE(os::sleep_until_readable({&fd, 1}, soon())) << "a wake-up was lost";
    events.collect();
  }
  std::string lose_peer() override {
    ends[1].reset();
    return "rank 1";
  }

 private:
  std::vector<std::unique_ptr<os::EventSet>> events_;
};

class LocalEnds final : public Ends {
 public:
  LocalEnds() { std::tie(ends[0], ends[1]) = make_local_carrier(); }
  void wait(int) override { std::this_thread::yield(); }  // both ends have one owner, which never sleeps on it
  std::string lose_peer() override {
    ends[1].reset();
    return "this rank's own end";
  }
};

struct Row {
  const char* name;
  std::function<std::unique_ptr<Ends>()> make;
};
const Row kRows[] = {
    {"board", [] { return std::make_unique<BoardEnds>(); }},
    {"tcp", [] { return std::make_unique<TcpEnds>(); }},
    {"local", [] { return std::make_unique<LocalEnds>(); }},
};

class CarrierContract : public ::testing::TestWithParam<Row> {
 protected:
  CarrierContract() : both_(GetParam().make()) {}

  void send(int from, ByteSpan frame) {
    for (;;) {
      const auto sent = both_->ends[from]->try_send(frame);
      ASSERT_TRUE(sent.ok()) << sent.status().message();
      if (*sent) return;
      both_->wait(from);
    }
  }
  Bytes recv(int to) {
    for (;;) {
      auto frame = both_->ends[to]->try_recv();
      EXPECT_TRUE(frame.ok()) << frame.status().message();
      if (!frame.ok()) return {};
      if (frame->has_value()) return std::move(**frame);
      both_->wait(to);
    }
  }
  std::unique_ptr<Ends> both_;
};

Bytes numbered(uint32_t number, size_t size) {
  Bytes frame(size);
  for (size_t i = 0; i < size; ++i) frame[i] = static_cast<std::byte>(number * 31 + i * 7 + (i >> 8));
  return frame;
}

TEST_P(CarrierContract, an_empty_carrier_says_nothing) {
  for (int end = 0; end < 2; ++end) {
    const auto frame = both_->ends[end]->try_recv();
    ASSERT_TRUE(frame.ok());
    EXPECT_FALSE(frame->has_value());
  }
}

TEST_P(CarrierContract, frames_of_every_size_arrive_in_order_both_ways) {
  const size_t sizes[] = {0, 1, 2, 3, 4, 19, 20, 21, 255, 4096, 32768, 65535, kMaxFrameBytes};
  uint32_t number = 0;
  for (int round = 0; round < 10; ++round) {
    for (const size_t size : sizes) {
      for (int end = 0; end < 2; ++end) {
        ++number;
        send(end, numbered(number, size));
        EXPECT_EQ(recv(1 - end), numbered(number, size));
      }
    }
  }
}

TEST_P(CarrierContract, a_full_carrier_says_so_and_recovers_after_reads) {
  for (const size_t size : {size_t{1}, size_t{1000}, kMaxFrameBytes}) {
    uint32_t sent = 0;
    for (;; ++sent) {
      const auto took = both_->ends[0]->try_send(numbered(sent, size));
      ASSERT_TRUE(took.ok()) << took.status().message();
      if (!*took) break;
      ASSERT_LT(sent, 1000000u) << "never full";
    }
    ASSERT_GT(sent, 0u);
    for (uint32_t number = 0; number < sent; ++number) ASSERT_EQ(recv(1), numbered(number, size));
    send(0, numbered(sent, size));
    EXPECT_EQ(recv(1), numbered(sent, size));
  }
}

TEST_P(CarrierContract, a_full_direction_does_not_stop_the_other) {
  while (*both_->ends[0]->try_send(Bytes(1000))) {
  }
  for (uint32_t number = 0; number < 500; ++number) {
    send(1, numbered(number, 1000));
    ASSERT_EQ(recv(0), numbered(number, 1000));
  }
}

// Sends and receives kFrames frames, and then one more, which says that all has come: so neither end goes before the
// other is done.
void hammer(Ends& both, int end) {
  constexpr uint32_t kFrames = 3000;
  std::mt19937 random(static_cast<unsigned>(end));
  uint32_t sent = 0;
  uint32_t received = 0;
  Bytes next;
  while (sent <= kFrames || received <= kFrames) {
    bool moved = false;
    if (sent < kFrames || (sent == kFrames && received >= kFrames)) {
      if (next.empty()) next = numbered(sent, 1 + random() % (sent % 50 == 0 ? kMaxFrameBytes : 300));
      const auto took = both.ends[end]->try_send(next);
      ASSERT_TRUE(took.ok()) << took.status().message();
      if (*took) {
        next.clear();
        ++sent;
        moved = true;
      }
    }
    const auto frame = both.ends[end]->try_recv();
    ASSERT_TRUE(frame.ok()) << frame.status().message();
    if (frame->has_value()) {
      ASSERT_EQ(**frame, numbered(received, (*frame)->size()));
      ++received;
      moved = true;
    }
    if (!moved) both.wait(end);
  }
}

TEST_P(CarrierContract, two_threads_that_hammer_it_lose_nothing) {
  std::thread other([&] { hammer(*both_, 1); });
  hammer(*both_, 0);
  other.join();
}

TEST_P(CarrierContract, a_peer_that_is_gone_is_named_after_its_last_frames_and_for_good) {
  send(1, numbered(1, 100));
  send(1, numbered(2, 100));
  EXPECT_EQ(recv(0), numbered(1, 100));
  const std::string name = both_->lose_peer();
  EXPECT_EQ(recv(0), numbered(2, 100));
  for (int i = 0; i < 3; ++i) {
    auto end = both_->ends[0]->try_recv();
    while (end.ok() && !end->has_value()) {
      both_->wait(0);
      end = both_->ends[0]->try_recv();
    }
    ASSERT_FALSE(end.ok());
    EXPECT_EQ(end.status().code(), Code::PeerLost);
    EXPECT_THAT(end.status().message(), HasSubstr(name));
    EXPECT_FALSE(both_->ends[0]->try_send(Bytes(1)).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(All, CarrierContract, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace ronde::control
