// SPDX-License-Identifier: Apache-2.0
// What every Link must do. A transport joins by one row at the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "transport/memory_link.h"
#include "transport/tcp_ranks.h"

namespace ronde::transport {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

struct Row {
  const char* name;
  std::function<std::unique_ptr<LinkPair>()> make;
};

Bytes pattern(size_t count, uint32_t seed) {
  Bytes out(count);
  uint32_t state = seed * 2654435761u + 1;
  for (auto& byte : out) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return out;
}

FrameTag tag_of(uint64_t batch, uint32_t step = 0) {
  return {.epoch = kTestEpoch, .step = step, .batch = batch};
}

void send(Link& link, const FrameTag& tag, ByteSpan payload) {
  link.post_send(tag, {&payload, 1});
}

class LinkContract : public testing::TestWithParam<Row> {
 protected:
  Link& a() { return pair_->end(0); }
  Link& b() { return pair_->end(1); }

  Status turn(int which) {
    pair_->pump(which);
    return pair_->end(which).advance();
  }
  // Both ends in turn, until it holds.
  template <class Condition>
  void drive_until(const Condition& condition) {
    const Time limit = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      for (const int which : {0, 1}) {
        const Status status = turn(which);
        ASSERT_TRUE(status.ok()) << status.to_string();
      }
      ASSERT_LT(std::chrono::steady_clock::now(), limit);
    }
  }
  Status error_of(int which) {
    const Time limit = std::chrono::steady_clock::now() + 60s;
    Status status;
    while (status.ok() && std::chrono::steady_clock::now() < limit) {
      (void)turn(1 - which);
      status = turn(which);
    }
    return status;
  }
  // One frame there and back, so that the ends know each other.
  void warm_up() {
    std::byte there{}, back{};
    const std::byte one{1};
    const uint64_t sends[] = {a().sends_done(), b().sends_done()};
    send(a(), tag_of(0), {&one, 1});
    send(b(), tag_of(0), {&one, 1});
    a().post_recv(tag_of(0), {&back, 1});
    b().post_recv(tag_of(0), {&there, 1});
    drive_until([&] { return a().recvs_done() == 1 && b().recvs_done() == 1; });
    EXPECT_EQ(a().sends_done(), sends[0] + 1);
    EXPECT_EQ(b().sends_done(), sends[1] + 1);
  }

  std::unique_ptr<LinkPair> pair_ = GetParam().make();
};

TEST_P(LinkContract, frames_arrive_in_order_in_both_directions) {
  constexpr int kFrames = 100;
  std::vector<Bytes> out[2], in[2];
  for (int which : {0, 1}) {
    for (int i = 0; i < kFrames; ++i) {
      out[which].push_back(pattern(static_cast<size_t>(i * i), static_cast<uint32_t>(1000 * which + i)));
      in[1 - which].emplace_back(out[which].back().size());
    }
    for (int i = 0; i < kFrames; ++i) {
      send(pair_->end(which), tag_of(5, static_cast<uint32_t>(i)), out[which][i]);
      pair_->end(1 - which).post_recv(tag_of(5, static_cast<uint32_t>(i)), in[1 - which][i]);
    }
  }
  drive_until([&] { return a().recvs_done() == kFrames && b().recvs_done() == kFrames; });
  EXPECT_EQ(in[0], out[1]);
  EXPECT_EQ(in[1], out[0]);
  EXPECT_EQ(a().sends_done(), kFrames);
  EXPECT_EQ(b().sends_done(), kFrames);
}

TEST_P(LinkContract, a_payload_is_the_concatenation_of_its_pieces) {
  const Bytes all = pattern(5000, 3);
  std::vector<ByteSpan> pieces;
  for (size_t at = 0, size = 0; at < all.size(); at += size, size = (size + 1) % 50) {
    pieces.push_back(ByteSpan(all).subspan(at, std::min(size, all.size() - at)));
  }
  ASSERT_GT(pieces.size(), 150u);
  Bytes got(all.size());
  a().post_send(tag_of(1), pieces);
  b().post_recv(tag_of(1), got);
  drive_until([&] { return b().recvs_done() == 1; });
  EXPECT_EQ(got, all);
}

TEST_P(LinkContract, empty_payloads_are_frames_too) {
  for (int i = 0; i < 3; ++i) {
    a().post_send(tag_of(1, i), {});
    send(a(), tag_of(2, i), {});
    b().post_recv(tag_of(1, i), {});
    b().post_recv(tag_of(2, i), {});
  }
  drive_until([&] { return b().recvs_done() == 6; });
  EXPECT_EQ(a().sends_done(), 6u);
}

TEST_P(LinkContract, many_posts_may_be_outstanding) {
  constexpr uint32_t kMany = 5000;
  const Bytes out = pattern(kMany, 9);
  Bytes in(kMany);
  for (uint32_t i = 0; i < kMany; ++i) send(a(), tag_of(i), ByteSpan(out).subspan(i, 1));
  for (uint32_t i = 0; i < kMany; ++i) b().post_recv(tag_of(i), std::span(in).subspan(i, 1));
  uint64_t before = 0;
  drive_until([&] {
    EXPECT_GE(b().recvs_done(), before);
    before = b().recvs_done();
    return before == kMany;
  });
  EXPECT_EQ(in, out);
}

TEST_P(LinkContract, what_comes_early_waits_for_its_receive) {
  warm_up();
  const Bytes out = pattern(100, 1);
  send(a(), tag_of(1), out);
  drive_until([&] { return a().sends_done() == 2; });
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(turn(1).ok());
  EXPECT_EQ(b().recvs_done(), 1u);
  Bytes in(100);
  b().post_recv(tag_of(1), in);
  drive_until([&] { return b().recvs_done() == 2; });
  EXPECT_EQ(in, out);
}

TEST_P(LinkContract, a_send_is_not_done_while_its_peer_does_not_read) {
  warm_up();
  const Bytes out = pattern(pair_->more_than_it_buffers(), 2);
  send(a(), tag_of(1), out);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(turn(0).ok());
    ASSERT_TRUE(turn(1).ok());
  }
  EXPECT_EQ(a().sends_done(), 1u);
  Bytes in(out.size());
  b().post_recv(tag_of(1), in);
  drive_until([&] { return b().recvs_done() == 2; });
  EXPECT_EQ(a().sends_done(), 2u);
  EXPECT_TRUE(in == out);
}

TEST_P(LinkContract, big_payloads_cross_in_both_directions_at_once) {
  const size_t big = pair_->more_than_it_buffers() / 8 * 2;
  const Bytes out[2] = {pattern(big, 4), pattern(big, 5)};
  Bytes in[2] = {Bytes(big), Bytes(big)};
  for (const int which : {0, 1}) {
    for (const size_t half : {size_t{0}, big / 2}) {
      send(pair_->end(which), tag_of(1, half != 0), ByteSpan(out[which]).subspan(half, big / 2));
      pair_->end(which).post_recv(tag_of(1, half != 0), std::span(in[which]).subspan(half, big / 2));
    }
  }
  drive_until([&] { return a().recvs_done() == 2 && b().recvs_done() == 2; });
  EXPECT_TRUE(in[0] == out[1]);
  EXPECT_TRUE(in[1] == out[0]);
}

TEST_P(LinkContract, each_end_may_be_driven_by_a_thread_of_its_own) {
  constexpr int kFrames = 200;
  std::vector<Bytes> in[2];
  std::thread threads[2];
  for (const int which : {0, 1}) {
    in[which].resize(kFrames);
    threads[which] = std::thread([&, which] {
      Link& link = pair_->end(which);
      std::vector<Bytes> out;
      out.reserve(kFrames);
      for (int i = 0; i < kFrames; ++i) {
        in[which][i].resize(static_cast<size_t>(i) * 37);
        out.push_back(pattern(static_cast<size_t>(i) * 37, static_cast<uint32_t>(i + which)));
        send(link, tag_of(1, static_cast<uint32_t>(i)), out.back());
        link.post_recv(tag_of(1, static_cast<uint32_t>(i)), in[which][i]);
      }
      const Time limit = std::chrono::steady_clock::now() + 60s;
      while ((link.recvs_done() < kFrames || link.sends_done() < kFrames) && std::chrono::steady_clock::now() < limit) {
        EXPECT_TRUE(turn(which).ok());
        std::this_thread::yield();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const int which : {0, 1}) {
    for (int i = 0; i < kFrames; ++i) {
      EXPECT_EQ(in[which][i], pattern(static_cast<size_t>(i) * 37, static_cast<uint32_t>(i + 1 - which)));
    }
  }
}

TEST_P(LinkContract, a_frame_with_another_tag_is_an_error_that_tells_both) {
  const FrameTag expected{.epoch = 7, .step = 3, .batch = 11};
  const FrameTag others[] = {
      {.epoch = 6, .step = 3, .batch = 11}, {.epoch = 7, .step = 4, .batch = 11}, {.epoch = 7, .step = 3, .batch = 10}};
  for (const FrameTag& other : others) {
    pair_ = GetParam().make();
    const Bytes out = pattern(8, 1);
    Bytes in(8, std::byte{99});
    send(a(), other, out);
    b().post_recv(expected, in);
    const Status status = error_of(1);
    EXPECT_EQ(status.code(), Code::Internal);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("rank 0"), HasSubstr("expected a frame of epoch 7, batch 11, step 3, 8 bytes"),
                      HasSubstr(cat("got one of epoch ", other.epoch, ", batch ", other.batch, ", step ", other.step,
                                    ", 8 bytes"))));
    EXPECT_EQ(in, Bytes(8, std::byte{99}));  // nothing of it was taken in
    EXPECT_EQ(b().recvs_done(), 0u);
  }
}

TEST_P(LinkContract, a_frame_of_another_length_is_an_error_that_tells_both) {
  for (const size_t length : {size_t{0}, size_t{7}, size_t{9}, size_t{1} << 20}) {
    pair_ = GetParam().make();
    const Bytes out = pattern(length, 1);
    Bytes in(8, std::byte{99});
    send(a(), tag_of(1), out);
    b().post_recv(tag_of(1), in);
    const Status status = error_of(1);
    EXPECT_EQ(status.code(), Code::Internal);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("step 0, 8 bytes, got"), HasSubstr(cat("step 0, ", length, " bytes;"))));
    EXPECT_EQ(in, Bytes(8, std::byte{99}));
  }
}

TEST_P(LinkContract, an_error_is_final_and_reaches_the_peer) {
  std::byte in{};
  send(a(), tag_of(1), {&in, 1});
  b().post_recv(tag_of(2), {&in, 1});
  const Status status = error_of(1);
  ASSERT_FALSE(status.ok());
  send(b(), tag_of(3), {});
  b().post_recv(tag_of(3), {});
  EXPECT_EQ(turn(1).message(), status.message());
  a().post_recv(tag_of(1), {&in, 1});
  EXPECT_EQ(error_of(0).code(), Code::PeerLost);
}

TEST_P(LinkContract, a_closed_link_tells_its_reason_and_lets_go_of_memory) {
  warm_up();
  const size_t size = pair_->more_than_it_buffers();
  auto out = std::make_unique<Bytes>(pattern(size, 1));
  auto in = std::make_unique<Bytes>(100);
  send(a(), tag_of(1), *out);
  a().post_recv(tag_of(1), *in);
  ASSERT_TRUE(turn(0).ok());
  a().close(Status(Code::Aborted, "rank 1 was killed by signal 9"));
  out.reset();
  in.reset();  // ASan watches
  for (int i = 0; i < 3; ++i) {
    const Status status = turn(0);
    EXPECT_EQ(status.code(), Code::Aborted);
    EXPECT_EQ(status.message(), "rank 1 was killed by signal 9");
  }
  a().close(Status(Code::Timeout, "later"));
  EXPECT_EQ(turn(0).message(), "later");
  EXPECT_EQ(a().recvs_done(), 1u);
  Bytes got(size);
  b().post_recv(tag_of(1), got);
  EXPECT_EQ(error_of(1).code(), Code::PeerLost);
}

TEST_P(LinkContract, a_link_closed_before_its_first_use_stays_closed) {
  a().close(Status(Code::Aborted, "no"));
  send(a(), tag_of(1), {});
  for (int i = 0; i < 10; ++i) {
    (void)turn(1);
    EXPECT_EQ(turn(0).message(), "no");
  }
  EXPECT_EQ(a().sends_done(), 0u);
}

TEST_P(LinkContract, a_peer_that_vanishes_is_named) {
  warm_up();
  Bytes in(10);
  a().post_recv(tag_of(1), in);
  ASSERT_TRUE(turn(0).ok());
  pair_->vanish(1);
  const Time limit = std::chrono::steady_clock::now() + 60s;
  Status status;
  while (status.ok() && std::chrono::steady_clock::now() < limit) status = turn(0);
  EXPECT_EQ(status.code(), Code::PeerLost);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 1"), HasSubstr("closed the connection")));
}

TEST_P(LinkContract, a_peer_that_vanishes_under_a_big_send_is_noticed) {
  warm_up();
  const Bytes out(pair_->more_than_it_buffers());
  send(a(), tag_of(1), out);
  ASSERT_TRUE(turn(0).ok());
  pair_->vanish(1);
  const Time limit = std::chrono::steady_clock::now() + 60s;
  Status status;
  while (status.ok() && std::chrono::steady_clock::now() < limit) status = turn(0);
  EXPECT_EQ(status.code(), Code::PeerLost);
  EXPECT_EQ(a().sends_done(), 1u);
}

TEST_P(LinkContract, what_was_sent_before_the_end_is_still_received) {
  warm_up();
  const Bytes out = pattern(500, 6);
  send(b(), tag_of(1), out);
  drive_until([&] { return b().sends_done() == 2; });
  pair_->vanish(1);
  Bytes in(500);
  std::byte more{};
  a().post_recv(tag_of(1), in);
  a().post_recv(tag_of(2), {&more, 1});
  const Time limit = std::chrono::steady_clock::now() + 60s;
  while (turn(0).ok() && std::chrono::steady_clock::now() < limit) {
  }
  EXPECT_EQ(a().recvs_done(), 2u);
  EXPECT_EQ(in, out);
}

class TcpPair final : public LinkPair {
 public:
  explicit TcpPair(int buffer_bytes) : ranks_(2, buffer_bytes) {}
  Link& end(int which) override { return ranks_.at(which).table->link(1 - which, 0); }
  void pump(int which) override { ranks_.pump(which); }
  size_t more_than_it_buffers() const override { return 16 << 20; }
  void vanish(int which) override { ranks_.vanish(which); }

 private:
  TcpRanks ranks_;
};

class MemoryPair final : public LinkPair {
 public:
  explicit MemoryPair(size_t capacity) : capacity_(capacity), network_(2, capacity) {}
  Link& end(int which) override { return network_.table(which).link(1 - which, 0); }
  void pump(int) override {}
  size_t more_than_it_buffers() const override { return 4 * capacity_; }
  void vanish(int which) override { network_.vanish(which); }

 private:
  size_t capacity_;
  MemoryNetwork network_;
};

const Row kRows[] = {
    {"Tcp", [] { return std::make_unique<TcpPair>(0); }},
    {"TcpWithSmallBuffers", [] { return std::make_unique<TcpPair>(16384); }},
    {"Memory", [] { return std::make_unique<MemoryPair>(64 * 1024); }},
    {"MemoryOfOddCapacity", [] { return std::make_unique<MemoryPair>(997); }},
};

INSTANTIATE_TEST_SUITE_P(All, LinkContract, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace ronde::transport
