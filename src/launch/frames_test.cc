// SPDX-License-Identifier: Apache-2.0
#include "launch/frames.h"

#include <gtest/gtest.h>

#include <random>

#include "launch/channel.h"
#include "os/pipe.h"

namespace ronde::launch {
namespace {

StartOrder order_with_everything() {
  StartOrder order;
  order.host = {.name = "h", .env = {"A=line\nbreak", "B=\"'\xc3\xa9\xff", "=odd"}, .ranks = {}};
  order.host.ranks.push_back({.rank = 3,
                              .local_rank = 1,
                              .local_size = 2,
                              .cross_rank = 1,
                              .cross_size = 4,
                              .env = {{"K", "v=1"}, {"E", ""}}});
  order.command = {"prog", "", "a b"};
  order.program = "/bin/prog";
  order.job = "job";
  order.run_dir = "/tmp/x";
  order.key[0] = std::byte{1};
  order.key[31] = std::byte{255};
  order.stdin_fd = 5;
  order.inherit_output = true;
  order.group = 77;
  return order;
}

TEST(Frames, a_start_order_arrives_byte_for_byte) {
  const StartOrder sent = order_with_everything();
  const auto got = decode_order(encode(Order(sent)));
  ASSERT_TRUE(got.ok()) << got.status().message();
  const auto& order = std::get<StartOrder>(*got);
  EXPECT_EQ(order.host.name, sent.host.name);
  EXPECT_EQ(order.host.env, sent.host.env);
  ASSERT_EQ(order.host.ranks.size(), 1u);
  EXPECT_EQ(order.host.ranks[0].rank, 3);
  EXPECT_EQ(order.host.ranks[0].cross_size, 4);
  EXPECT_EQ(order.host.ranks[0].env, sent.host.ranks[0].env);
  EXPECT_EQ(order.command, sent.command);
  EXPECT_EQ(order.run_dir, sent.run_dir);
  EXPECT_EQ(order.key, sent.key);
  EXPECT_EQ(order.stdin_fd, 5);
  EXPECT_TRUE(order.inherit_output);
  EXPECT_EQ(order.stdout_fd, -1);
  EXPECT_EQ(order.group, 77);
}

TEST(Frames, the_other_messages_arrive) {
  EXPECT_EQ(std::get<SignalOrder>(*decode_order(encode(Order(SignalOrder{15})))).signal, 15);
  EXPECT_EQ(std::get<Credit>(*decode_order(encode(Order(Credit{1ull << 40})))).bytes, 1ull << 40);
  EXPECT_EQ(std::get<RankStarted>(*decode_report(encode(Report(RankStarted{2, 99})))).pid, 99);
  const Ending ending{Ending::Kind::Killed, 9, true};
  EXPECT_EQ(std::get<RankEnded>(*decode_report(encode(Report(RankEnded{2, ending})))).ending, ending);
  const std::string bytes("\0\n\xff", 3);
  EXPECT_EQ(std::get<RankOutput>(*decode_report(encode(Report(RankOutput{1, 2, bytes})))).bytes, bytes);
  EXPECT_EQ(std::get<RankClosed>(*decode_report(encode(Report(RankClosed{1, 2})))).stream, 2);
  EXPECT_EQ(std::get<AgentSays>(*decode_report(encode(Report(AgentSays{true, "no"})))).text, "no");
  EXPECT_TRUE(std::holds_alternative<AgentDone>(*decode_report(encode(Report(AgentDone{})))));
}

TEST(Frames, orders_are_no_reports_and_the_other_way_round) {
  EXPECT_FALSE(decode_report(encode(Order(SignalOrder{15}))).ok());
  EXPECT_FALSE(decode_order(encode(Report(AgentDone{}))).ok());
}

TEST(Frames, every_cut_and_changed_message_is_an_error_or_another_message_but_never_a_crash) {
  const Bytes good = encode(Order(order_with_everything()));
  for (size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(decode_order(ByteSpan(good).first(length)).ok());
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    Bytes bad = good;
    for (int changes = 0; changes < 3; ++changes) bad[random() % bad.size()] = static_cast<std::byte>(random());
    const auto order = decode_order(bad);
    const auto report = decode_report(bad);
    EXPECT_TRUE(order.ok() || !order.status().message().empty());
    EXPECT_TRUE(report.ok() || !report.status().message().empty());
  }
}

TEST(Channel, frames_of_any_size_arrive_in_order_while_the_socket_is_full) {
  auto sockets = os::make_socket_pair();
  ASSERT_TRUE(sockets.ok());
  Channel left(std::move(sockets->first));
  Channel right(std::move(sockets->second));
  std::vector<Bytes> sent;
  for (const size_t size : {0, 1, 70'000, 3'000'000, 5}) {
    sent.emplace_back(size, static_cast<std::byte>(size));
    left.send(sent.back());
  }
  EXPECT_GT(left.unsent(), 0u);
  std::vector<Bytes> got;
  while (got.size() < sent.size()) {
    ASSERT_TRUE(right.receive());
    while (auto frame = right.next()) got.push_back(std::move(*frame));
    left.flush();
  }
  EXPECT_EQ(got, sent);
  EXPECT_EQ(left.unsent(), 0u);
}

TEST(Channel, what_was_sent_before_the_end_can_still_be_read) {
  auto sockets = os::make_socket_pair();
  ASSERT_TRUE(sockets.ok());
  Channel right(std::move(sockets->second));
  {
    Channel left(std::move(sockets->first));
    left.send(Bytes(3));
  }
  EXPECT_FALSE(right.receive());
  EXPECT_EQ(right.next()->size(), 3u);
  EXPECT_FALSE(right.next());
}

TEST(Channel, a_length_beyond_reason_closes_it) {
  auto sockets = os::make_socket_pair();
  ASSERT_TRUE(sockets.ok());
  const uint32_t length = kMaxFrameBytes + 1;
  ASSERT_TRUE(
      os::write_blocking(sockets->first.get(), std::string_view(reinterpret_cast<const char*>(&length), 4)).ok());
  Channel right(std::move(sockets->second));
  EXPECT_TRUE(right.receive());
  EXPECT_FALSE(right.next());
  EXPECT_TRUE(right.closed());
}

}  // namespace
}  // namespace ronde::launch
