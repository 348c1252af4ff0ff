// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "os/event_set.h"
#include "os/socket.h"

namespace ronde::os {
namespace {

using namespace std::chrono_literals;

Time in(Duration span) {
  return std::chrono::steady_clock::now() + span;
}

// Two ends of a TCP connection over the loopback.
class Stream : public testing::Test {
 protected:
  Stream() {
    const Listener listener = listen_tcp({"127.0.0.1", 0}).value();
    a_ = connect_tcp_by({&listener.bound, 1}, in(30s)).value();
    const int raw = listener.fd.get();
    EXPECT_TRUE(sleep_until_readable({&raw, 1}, in(30s)));
    b_ = accept_now(listener.fd).value();
  }
  Fd a_, b_;
};

Bytes pattern(size_t count) {
  Bytes out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 251);
  return out;
}

void wait_readable(const Fd& fd) {
  const int raw = fd.get();
  ASSERT_TRUE(sleep_until_readable({&raw, 1}, in(30s)));
}

TEST_F(Stream, nothing_to_read_is_zero) {
  Bytes into(10);
  EXPECT_EQ(read_some(a_, into).value(), 0u);
  EXPECT_EQ(read_some(a_, {}).value(), 0u);
  EXPECT_EQ(write_some(a_, {}).value(), 0u);
  const ByteSpan empty;
  EXPECT_EQ(write_some(a_, {&empty, 1}).value(), 0u);
}

TEST_F(Stream, pieces_arrive_as_one_row_of_bytes) {
  const Bytes all = pattern(1000);
  std::vector<ByteSpan> pieces;
  for (size_t at = 0, size = 0; at < all.size(); at += size, size = (size + 1) % 14) {
    pieces.push_back(ByteSpan(all).subspan(at, std::min(size, all.size() - at)));
  }
  ASSERT_GT(pieces.size(), 128u);  // more than one call takes, empty ones among them
  EXPECT_EQ(write_some(a_, pieces).value(), all.size());
  Bytes got(all.size());
  ASSERT_TRUE(read_all_by(b_, got, in(30s)).ok());
  EXPECT_EQ(got, all);
}

TEST_F(Stream, a_full_socket_takes_a_part_and_then_zero) {
  const Bytes all = pattern(64 << 20);
  const ByteSpan halves[] = {ByteSpan(all).first(all.size() / 2), ByteSpan(all).subspan(all.size() / 2)};
  const size_t sent = write_some(a_, halves).value();
  EXPECT_GT(sent, 0u);
  ASSERT_LT(sent, all.size());
  EXPECT_EQ(write_some(a_, halves).value(), 0u);
  Bytes got(sent);
  ASSERT_TRUE(read_all_by(b_, got, in(30s)).ok());
  EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin()));
}

TEST_F(Stream, big_transfers_with_waiting_on_both_sides_are_whole) {
  const Bytes all = pattern(8 << 20);
  Status sent;
  std::thread writer([&] { sent = write_all_by(a_, all, in(60s)); });
  Bytes got(all.size());
  EXPECT_TRUE(read_all_by(b_, got, in(60s)).ok());
  writer.join();
  EXPECT_TRUE(sent.ok());
  EXPECT_EQ(got, all);
}

TEST_F(Stream, reading_gives_what_came_before_the_end_and_then_the_end) {
  ASSERT_TRUE(write_all_by(a_, pattern(3), in(30s)).ok());
  a_.reset();
  Bytes into(10);
  wait_readable(b_);
  EXPECT_EQ(read_some(b_, into).value(), 3u);
  wait_readable(b_);
  const Status end = read_some(b_, into).status();
  EXPECT_EQ(end.code(), Code::PeerLost);
  EXPECT_EQ(end.message(), "closed the connection");
}

TEST_F(Stream, writing_to_a_closed_peer_is_an_error_without_a_signal) {
  struct sigaction old {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &old), 0);
  EXPECT_EQ(old.sa_handler, SIG_DFL);  // SIGPIPE would end this process
  b_.reset();
  const Bytes bytes = pattern(100);
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = write_all_by(a_, bytes, in(30s));
  EXPECT_EQ(status.code(), Code::PeerLost);
  status = write_all_by(a_, bytes, in(30s));
  EXPECT_EQ(status.message(), "closed the connection");
}

TEST_F(Stream, a_reset_is_peer_lost_with_its_reason) {
  const linger abort_it{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(::setsockopt(a_.get(), SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it), 0);
  a_.reset();
  wait_readable(b_);
  Bytes into(1);
  const Status status = read_some(b_, into).status();
  EXPECT_EQ(status.code(), Code::PeerLost);
  EXPECT_EQ(status.message(), "read: Connection reset by peer");
}

TEST_F(Stream, deadlines_tell_how_far_it_came) {
  ASSERT_TRUE(write_all_by(a_, pattern(3), in(30s)).ok());
  Bytes into(10);
  const Status read = read_all_by(b_, into, in(50ms));
  EXPECT_EQ(read.code(), Code::Timeout);
  EXPECT_EQ(read.message(), "timed out with 3 of 10 bytes read");
  const Status written = write_all_by(a_, Bytes(64 << 20), in(20ms));
  EXPECT_EQ(written.code(), Code::Timeout);
}

TEST_F(Stream, a_signal_interrupts_no_transfer) {
  struct sigaction old {};
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &old), 0);
  const Bytes all = pattern(4 << 20);
  Bytes got(all.size());
  Status read;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    read = read_all_by(b_, got, in(60s));
    done.store(true);
  });
  for (size_t at = 0; at < all.size(); at += 256 << 10) {
    ::pthread_kill(reader.native_handle(), SIGUSR2);
    EXPECT_TRUE(write_all_by(a_, ByteSpan(all).subspan(at, 256 << 10), in(60s)).ok());
  }
  reader.join();
  EXPECT_TRUE(read.ok()) << read.to_string();
  EXPECT_EQ(got, all);
  ::sigaction(SIGUSR2, &old, nullptr);
}

}  // namespace
}  // namespace ronde::os
