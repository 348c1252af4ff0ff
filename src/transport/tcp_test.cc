// SPDX-License-Identifier: Apache-2.0
// What is special to TCP: how connections come to be, and what strangers and torn frames lead to.
#include "transport/tcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "transport/framing.h"
#include "transport/tcp_ranks.h"

namespace ronde::transport {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

Time in(Duration span) {
  return std::chrono::steady_clock::now() + span;
}
FrameTag tag_of(uint64_t batch) {
  return {.epoch = kTestEpoch, .step = 0, .batch = batch};
}

// Where nobody listens: a port that was given to a listener which is gone.
os::Address deaf_address() {
  const auto listener = os::listen_tcp({"127.0.0.1", 0}).value();
  return listener.bound;
}

Status error_of(Link& link, const std::function<void()>& pump) {
  const Time limit = in(60s);
  Status status;
  while (status.ok() && std::chrono::steady_clock::now() < limit) {
    pump();
    status = link.advance();
  }
  return status;
}

class Tcp : public testing::Test {
 protected:
  void pump() {
    ranks_.pump(0);
    ranks_.pump(1);
    ranks_.pump(2);
  }
  // One frame of one byte.
  void exchange(Link& from, Link& to, uint64_t batch) {
    const std::byte out{static_cast<unsigned char>(batch)};
    std::byte got{};
    const ByteSpan piece(&out, 1);
    const uint64_t before = to.recvs_done();
    from.post_send(tag_of(batch), {&piece, 1});
    to.post_recv(tag_of(batch), {&got, 1});
    const Time limit = in(60s);
    while (to.recvs_done() == before && std::chrono::steady_clock::now() < limit) {
      pump();
      ASSERT_TRUE(from.advance().ok());
      ASSERT_TRUE(to.advance().ok());
    }
    EXPECT_EQ(got, out);
  }
  // A table of rank 0 that finds rank 1 at these addresses.
  std::unique_ptr<TcpLinkTable> table_with(std::vector<os::Address> addresses, const Clock* clock = nullptr,
                                           Duration timeout = 30s) {
    auto options = ranks_.options_of(0);
    options.addresses = {{}, std::move(addresses)};
    options.connect_timeout = timeout;
    if (clock != nullptr) options.clock = clock;
    return std::make_unique<TcpLinkTable>(std::move(options));
  }
  // A connection to rank 1 as somebody who has the key.
  Result<member::Greeted> greet(const member::Identity& self) {
    Result<member::Greeted> out = Status(Code::Internal, "not yet");
    auto fd = os::connect_tcp_by(std::vector{ranks_.address(1)}, in(30s)).value();
    std::atomic<bool> done{false};
    std::thread initiator([&] {
      out = member::greet_by(std::move(fd), member::Hello::Role::Initiator, ranks_.key(), self, in(30s));
      done.store(true);
    });
    while (!done.load()) ranks_.pump(1);
    initiator.join();
    const Time limit = std::chrono::steady_clock::now() + 20ms;
    while (std::chrono::steady_clock::now() < limit) ranks_.pump(1);
    return out;
  }
  member::Identity data_identity(int32_t rank, uint32_t stream = 0) {
    return {.purpose = member::Purpose::Data, .rank = rank, .epoch = kTestEpoch, .stream = stream};
  }

  TcpRanks ranks_{3};
};

TEST_F(Tcp, either_side_may_use_the_link_first_and_streams_are_apart) {
  Link& late = ranks_.at(1).table->link(0, 0);
  std::byte got{};
  late.post_recv(tag_of(1), {&got, 1});
  for (int i = 0; i < 10; ++i) {
    pump();
    ASSERT_TRUE(late.advance().ok());
  }
  exchange(ranks_.at(0).table->link(1, 1), ranks_.at(1).table->link(0, 1), 4);
  EXPECT_EQ(late.recvs_done(), 0u);
  Link& early = ranks_.at(0).table->link(1, 0);
  const std::byte out{77};
  const ByteSpan piece(&out, 1);
  early.post_send(tag_of(1), {&piece, 1});
  while (late.recvs_done() == 0) {
    pump();
    ASSERT_TRUE(early.advance().ok());
    ASSERT_TRUE(late.advance().ok());
  }
  EXPECT_EQ(got, out);
  EXPECT_NE(&early, &ranks_.at(0).table->link(1, 1));
  EXPECT_EQ(&early, &ranks_.at(0).table->link(1, 0));
}

TEST_F(Tcp, bytes_sent_counts_headers_and_payloads) {
  exchange(ranks_.at(0).table->link(2, 0), ranks_.at(2).table->link(0, 0), 1);
  exchange(ranks_.at(0).table->link(1, 0), ranks_.at(1).table->link(0, 0), 1);
  EXPECT_EQ(ranks_.at(0).table->bytes_sent(), 2 * (kHeaderBytes + 1));
  EXPECT_EQ(ranks_.at(1).table->bytes_sent(), 0u);
}

TEST_F(Tcp, the_header_on_the_wire_is_epoch_step_batch_length) {
  const FrameHeader header = make_header({.epoch = 1, .step = 2, .batch = 3}, 4);
  const unsigned char expected[] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(header.data(), expected, sizeof expected), 0);
}

TEST_F(Tcp, addresses_are_tried_in_turn) {
  const auto table = table_with({deaf_address(), {"::1", deaf_address().port}, ranks_.address(1)});
  exchange(table->link(1, 0), ranks_.at(1).table->link(0, 0), 1);
}

TEST_F(Tcp, when_no_address_answers_the_error_lists_all) {
  const os::Address first = deaf_address();
  const os::Address second = deaf_address();
  const auto table = table_with({first, second});
  const Status status = error_of(table->link(1, 0), [&] { pump(); });
  EXPECT_EQ(status.code(), Code::PeerLost);
  EXPECT_THAT(status.message(), HasSubstr("data link of rank 0 to rank 1 (host h, pid 101): cannot connect ("));
  EXPECT_THAT(status.message(), AllOf(HasSubstr(cat(first.to_string(), ": ")), HasSubstr(cat(second.to_string(), ": ")),
                                      HasSubstr("Connection refused")));
}

TEST_F(Tcp, a_rank_without_addresses_cannot_be_reached) {
  const auto table = table_with({});
  EXPECT_THAT(error_of(table->link(1, 0), [] {}).message(), HasSubstr("it has no address"));
}

TEST_F(Tcp, an_address_that_leads_to_another_rank_is_passed_over) {
  const auto table = table_with({ranks_.address(2), ranks_.address(1)});
  exchange(table->link(1, 0), ranks_.at(1).table->link(0, 0), 1);
  EXPECT_TRUE(ranks_.at(2).adopted.ok()) << "rank 2 has never taken it for its own";
  const auto lost = table_with({ranks_.address(2)});
  EXPECT_THAT(error_of(lost->link(1, 0), [&] { pump(); }).message(), HasSubstr("rank 2 answered a call for rank 1"));
}

TEST_F(Tcp, a_peer_that_takes_the_connection_and_does_not_answer_is_tried_again_until_the_link_is_closed) {
  const auto silent = os::listen_tcp({"127.0.0.1", 0}).value();
  ManualClock time;
  const auto table = table_with({silent.bound, silent.bound}, &time, 10s);
  Link& link = table->link(1, 0);
  const Time start = time.now();
  std::vector<os::Fd> taken;
  for (size_t attempt = 1; attempt <= 20; ++attempt) {
    const Time limit = in(60s);
    while (taken.size() < attempt && std::chrono::steady_clock::now() < limit) {
      ASSERT_TRUE(link.advance().ok());
      auto fd = os::accept_now(silent.fd).value();
      if (fd.valid()) taken.push_back(std::move(fd));
    }
    ASSERT_TRUE(link.advance().ok());
    EXPECT_EQ(table->next_deadline(), start + attempt * 5s) << "each address gets its share";
    time.advance(5s);
  }
  link.close(Status(Code::Timeout, "the owner has waited enough"));
  EXPECT_EQ(table->next_deadline(), kNever);
}

TEST_F(Tcp, a_peer_that_was_stopped_for_long_in_the_middle_of_its_hello_finds_the_link_waiting) {
  ManualClock time;
  const auto table = table_with({ranks_.address(1)}, &time, 10s);
  Link& link = table->link(1, 0);
  auto& greeter = *ranks_.at(1).greeter;
  const Time limit = in(60s);
  while (table->next_deadline() != kNever && std::chrono::steady_clock::now() < limit) {
    ranks_.pump(1);
    ASSERT_TRUE(link.advance().ok());
  }
  ASSERT_NE(greeter.next_deadline(), kNever) << "the proof lies in the socket of the stopped one";
  time.advance(60s);
  ASSERT_TRUE(link.advance().ok());
  exchange(link, ranks_.at(1).table->link(0, 0), 1);
}

TEST_F(Tcp, a_peer_that_closes_in_the_middle_of_a_hello_is_tried_again_a_few_times) {
  const auto rude = os::listen_tcp({"127.0.0.1", 0}).value();
  const auto table = table_with({rude.bound});
  Link& link = table->link(1, 0);
  int calls = 0;
  const Status status = error_of(link, [&] {
    auto fd = os::accept_now(rude.fd).value();
    if (!fd.valid()) return;
    ++calls;
    Bytes hello(1);
    ASSERT_TRUE(os::read_all_by(fd, hello, in(30s)).ok());
  });
  EXPECT_EQ(calls, member::kCalls);
  EXPECT_EQ(status.code(), Code::PeerLost);
  EXPECT_THAT(status.message(), HasSubstr(cat(rude.bound.to_string(), ": ")));
}

TEST_F(Tcp, a_rank_that_was_stopped_in_the_middle_of_its_hello_connects_again) {
  Link& link = ranks_.at(0).table->link(1, 0);
  auto& greeter = *ranks_.at(1).greeter;
  const Time limit = in(60s);
  while (greeter.next_deadline() == kNever && std::chrono::steady_clock::now() < limit) ranks_.pump(1);
  ranks_.pump(1);                             // answers
  EXPECT_TRUE(greeter.take(in(5s)).empty());  // and has heard no more for 5 s
  EXPECT_EQ(greeter.next_deadline(), kNever);
  exchange(link, ranks_.at(1).table->link(0, 0), 1);
}

TEST_F(Tcp, a_peer_with_another_key_is_refused) {
  auto options = ranks_.options_of(0);
  options.key = member::random_key();
  options.addresses = {{}, {ranks_.address(1)}};
  TcpLinkTable table(std::move(options));
  EXPECT_EQ(error_of(table.link(1, 0), [&] { pump(); }).code(), Code::PeerLost);
}

TEST_F(Tcp, connections_that_nobody_expects_are_refused) {
  const struct {
    member::Identity self;
    const char* why;
  } rows[] = {
      {{.purpose = member::Purpose::Data, .rank = 0, .epoch = kTestEpoch + 1}, "this is epoch 7"},
      {{.purpose = member::Purpose::Control, .rank = 0, .epoch = kTestEpoch}, "it is not for data"},
      {data_identity(1), "rank 1 accepts from lower ranks"},
      {data_identity(2), "rank 1 accepts from lower ranks"},
      {data_identity(-1), "rank 1 accepts from lower ranks"},
      {data_identity(0, kMaxStreams), "streams are numbered below 64"},
  };
  for (const auto& row : rows) {
    ranks_.at(1).adopted = {};
    auto connection = greet(row.self);
    ASSERT_TRUE(connection.ok()) << connection.status().message();
    EXPECT_EQ(ranks_.at(1).adopted.code(), Code::Internal);
    EXPECT_THAT(ranks_.at(1).adopted.message(), HasSubstr(row.why));
    Bytes one(1);
    EXPECT_EQ(os::read_all_by(connection->fd, one, in(30s)).code(), Code::PeerLost);
  }
}

TEST_F(Tcp, a_second_connection_of_one_stream_is_refused_and_the_first_goes_on) {
  Link& a = ranks_.at(0).table->link(1, 0);
  Link& b = ranks_.at(1).table->link(0, 0);
  exchange(a, b, 1);
  const auto second = greet(data_identity(0));
  EXPECT_THAT(ranks_.at(1).adopted.message(), HasSubstr("rank 0 (epoch 7, stream 0): it has one already"));
  exchange(b, a, 2);
}

TEST_F(Tcp, close_all_closes_links_of_the_present_and_the_future) {
  Link& open = ranks_.at(1).table->link(0, 0);
  exchange(ranks_.at(0).table->link(1, 0), open, 1);
  ranks_.at(1).table->close_all(Status(Code::Aborted, "rank 2 is gone"));
  EXPECT_EQ(open.advance().message(), "rank 2 is gone");
  EXPECT_EQ(ranks_.at(1).table->link(0, 1).advance().message(), "rank 2 is gone");
  EXPECT_EQ(ranks_.at(1).table->link(2, 0).advance().message(), "rank 2 is gone");
  const auto late = greet(data_identity(0, 5));
  EXPECT_EQ(ranks_.at(1).adopted.message(), "rank 2 is gone");
}

// Bytes as a stranger to our code would write them, torn anywhere.
class TcpBytes : public Tcp {
 protected:
  TcpBytes() : raw_(greet(data_identity(0)).value()) {}
  Link& link() { return ranks_.at(1).table->link(0, 0); }
  void write(ByteSpan bytes) { ASSERT_TRUE(os::write_all_by(raw_.fd, bytes, in(30s)).ok()); }
  member::Greeted raw_;
};

TEST_F(TcpBytes, a_frame_that_arrives_byte_by_byte_is_whole) {
  Writer frame;
  frame.put_bytes(make_header(tag_of(1), 3)).put_bytes(std::as_bytes(std::span("abc", 3)));
  Bytes got(3);
  link().post_recv(tag_of(1), got);
  for (const std::byte byte : frame.bytes()) {
    EXPECT_EQ(link().recvs_done(), 0u);
    write({&byte, 1});
    for (int i = 0; i < 3; ++i) {
      pump();
      ASSERT_TRUE(link().advance().ok());
    }
  }
  while (link().recvs_done() == 0) {
    pump();
    ASSERT_TRUE(link().advance().ok());
  }
  EXPECT_EQ(std::memcmp(got.data(), "abc", 3), 0);
}

TEST_F(TcpBytes, an_end_within_a_frame_is_a_lost_peer) {
  const FrameHeader header = make_header(tag_of(1), 3);
  for (const size_t length : {size_t{1}, header.size(), header.size() + 2}) {
    if (length != 1) raw_ = greet(data_identity(0, static_cast<uint32_t>(length))).value();
    Link& torn = ranks_.at(1).table->link(0, length == 1 ? 0 : static_cast<int>(length));
    Bytes got(3);
    torn.post_recv(tag_of(1), got);
    Writer frame;
    frame.put_bytes(header).put_bytes(std::as_bytes(std::span("abc", 3)));
    write(ByteSpan(frame.bytes()).first(length));
    raw_.fd.reset();
    const Status status = error_of(torn, [&] { pump(); });
    EXPECT_EQ(status.code(), Code::PeerLost);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 (host h, pid 100): closed the connection"));
    EXPECT_EQ(torn.recvs_done(), 0u);
  }
}

TEST_F(TcpBytes, a_length_that_would_overflow_is_refused) {
  Bytes got(8);
  link().post_recv(tag_of(1), got);
  write(make_header(tag_of(1), UINT64_MAX));
  EXPECT_THAT(error_of(link(), [&] { pump(); }).message(), HasSubstr("18446744073709551615 bytes"));
}

}  // namespace
}  // namespace ronde::transport
