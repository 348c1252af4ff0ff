// SPDX-License-Identifier: Apache-2.0
#include "member/greeter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ronde::member {
namespace {

using ::testing::HasSubstr;
using Role = Hello::Role;
constexpr Duration kPatience = std::chrono::seconds(20);

Time soon() {
  return SteadyClock().now() + kPatience;
}

// A greeter of rank 4 on a port of loopback, driven by the test's thread.
class GreeterTest : public ::testing::Test {
 protected:
  GreeterTest()
      : events_(os::EventSet::create().value()),
        greeter_(os::listen_tcp({"127.0.0.1", 0}).value(), key_, 4, &events_) {}

  os::Fd connect() {
    const os::Address address = greeter_.address();
    return os::connect_tcp_by({&address, 1}, soon()).value();
  }
  // Looks at least every 20 ms, because what ends a test's wait may be no event of the greeter's.
  void step() {
    const int fd = events_.fd();
    os::sleep_until_readable({&fd, 1}, SteadyClock().now() + std::chrono::milliseconds(20));
    events_.collect();
    for (auto& one : greeter_.take(SteadyClock().now())) greeted_.push_back(std::move(one));
  }
  // One of the job's own connects while the strangers that the test has sent are there.
  void expect_that_the_job_gets_through() {
    Result<Greeted> ours(Status(Code::Internal, "did not run"));
    std::thread rank([&] {
      ours = greet_by(connect(), Role::Initiator, key_, {.purpose = Purpose::Control, .rank = 2, .epoch = 9}, soon());
    });
    const Time give_up = soon();
    while (greeted_.empty() && SteadyClock().now() < give_up) step();
    rank.join();
    ASSERT_TRUE(ours.ok()) << ours.status().message();
    ASSERT_EQ(greeted_.size(), 1u);
    EXPECT_EQ(greeted_[0].peer, (Identity{.purpose = Purpose::Control, .rank = 2, .epoch = 9}));
    EXPECT_EQ(ours->peer, (Identity{.purpose = Purpose::Control, .rank = 4, .called = 2, .epoch = 9}));
    EXPECT_EQ(greeted_[0].session, ours->session);
  }
  // Steps until the greeter has closed the connection.
  void expect_closed(const os::Fd& fd) {
    const Time give_up = soon();
    std::byte byte;
    for (;;) {
      const auto got = os::read_some(fd, {&byte, 1});
      if (!got.ok()) return;
      ASSERT_EQ(*got, 0u) << "a stranger is told nothing";
      ASSERT_LT(SteadyClock().now(), give_up);
      step();
    }
  }

  const Key key_ = random_key();
  os::EventSet events_;
  Greeter greeter_;
  std::vector<Greeted> greeted_;
};

void say(const os::Fd& fd, const Bytes& bytes) {
  ASSERT_TRUE(os::write_all_by(fd, bytes, soon()).ok());
}

TEST_F(GreeterTest, the_jobs_own_connection_is_handed_out_with_its_identity) {
  expect_that_the_job_gets_through();
}

TEST_F(GreeterTest, what_follows_the_hello_is_left_in_the_socket) {
  expect_that_the_job_gets_through();
  greeted_.clear();
  std::thread rank([&] {
    auto ours = greet_by(connect(), Role::Initiator, key_, {}, soon());
    ASSERT_TRUE(ours.ok());
    say(ours->fd, {std::byte{42}});
  });
  while (greeted_.empty()) step();
  std::byte byte{};
  EXPECT_TRUE(os::read_all_by(greeted_[0].fd, {&byte, 1}, soon()).ok());
  EXPECT_EQ(byte, std::byte{42});
  rank.join();
}

TEST_F(GreeterTest, a_stranger_with_garbage_is_closed_and_the_job_gets_through) {
  const os::Fd stranger = connect();
  say(stranger, Bytes(500, std::byte{'G'}));
  expect_that_the_job_gets_through();
  expect_closed(stranger);
}

TEST_F(GreeterTest, a_stranger_that_claims_two_gibibytes_is_closed_and_the_job_gets_through) {
  const os::Fd stranger = connect();
  Bytes bytes(65, std::byte{0});
  bytes[3] = std::byte{0x80};
  say(stranger, bytes);
  expect_that_the_job_gets_through();
  expect_closed(stranger);
}

TEST_F(GreeterTest, a_silent_and_a_slow_stranger_are_closed_in_time_and_the_job_gets_through) {
  const os::Fd silent = connect();
  const os::Fd slow = connect();
  say(slow, {std::byte{0x81}, std::byte{'R'}});
  const Time start = SteadyClock().now();
  expect_that_the_job_gets_through();
  EXPECT_NE(greeter_.next_deadline(), kNever);
  expect_closed(silent);
  expect_closed(slow);
  EXPECT_GE(SteadyClock().now() - start, kHelloTimeout - std::chrono::milliseconds(100));
  EXPECT_EQ(greeter_.next_deadline(), kNever);
}

TEST_F(GreeterTest, a_stranger_that_goes_away_is_forgotten) {
  connect();
  expect_that_the_job_gets_through();
  while (greeter_.next_deadline() != kNever) step();
}

TEST_F(GreeterTest, more_strangers_than_may_wait_do_not_keep_the_job_out) {
  std::vector<os::Fd> strangers;
  for (size_t i = 0; i < kMaxPending + 20; ++i) {
    strangers.push_back(connect());
    events_.collect();
    EXPECT_TRUE(greeter_.take(SteadyClock().now()).empty());
  }
  expect_that_the_job_gets_through();
  expect_closed(strangers.front());
}

TEST_F(GreeterTest, strangers_are_told_of_in_one_warning) {
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) {
    const os::Fd stranger = connect();
    say(stranger, Bytes(500, std::byte{'G'}));
    expect_closed(stranger);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("refused a connection from 127.0.0.1:"));
  EXPECT_EQ(said.find("refused"), said.rfind("refused"));
}

TEST_F(GreeterTest, a_wrong_key_is_refused_on_both_sides) {
  Status told;
  std::atomic<bool> over = false;
  std::thread rank([&] {
    told = greet_by(connect(), Role::Initiator, random_key(), {}, soon()).status();
    over = true;
  });
  while (!over || greeter_.next_deadline() != kNever) step();
  rank.join();
  EXPECT_EQ(told.code(), Code::InvalidArgument) << told.message();
  EXPECT_TRUE(greeted_.empty());
}

TEST_F(GreeterTest, another_build_is_named_to_the_one_that_connects) {
  const os::Fd stranger = connect();
  Hello other(Role::Initiator, key_, {});
  Bytes first = other.start();
  first[8] ^= std::byte{1};
  say(stranger, first);
  Bytes answer(other.wants());
  size_t done = 0;
  while (done < answer.size()) {
    step();
    const auto got = os::read_some(stranger, std::span(answer).subspan(done));
    ASSERT_TRUE(got.ok()) << "the answer says which build this is";
    done += *got;
  }
  answer[8] ^= std::byte{1};
  Bytes out;
  EXPECT_THAT(other.feed(answer, out).message(), HasSubstr("peer runs ronde build"));
}

TEST_F(GreeterTest, a_greeting_connects_first) {
  auto fd = os::start_connect_tcp(greeter_.address());
  ASSERT_TRUE(fd.ok());
  Greeting greeting(std::move(fd).value(),
                    Hello(Role::Initiator, key_, {.purpose = Purpose::Data, .rank = 1, .epoch = 3, .stream = 1}),
                    soon());
  bool done = false;
  while (!done || greeted_.empty()) {
    if (!done) {
      const auto advanced = greeting.advance(SteadyClock().now());
      ASSERT_TRUE(advanced.ok()) << advanced.status().message();
      done = *advanced;
    }
    events_.collect();
    for (auto& one : greeter_.take(SteadyClock().now())) greeted_.push_back(std::move(one));
  }
  EXPECT_EQ(greeting.take().session, greeted_[0].session);
}

TEST(Greeting, a_refused_connection_is_an_error) {
  os::Address address;
  {
    const auto listener = os::listen_tcp({"127.0.0.1", 0});
    address = listener->bound;
  }
  auto fd = os::start_connect_tcp(address);
  if (!fd.ok()) return;
  Greeting greeting(std::move(fd).value(), Hello(Role::Initiator, random_key(), {}), soon());
  Result<bool> advanced = false;
  while (advanced.ok() && !*advanced) advanced = greeting.advance(SteadyClock().now());
  EXPECT_FALSE(advanced.ok());
}

TEST(Greeting, an_acceptor_that_says_nothing_runs_into_the_deadline) {
  const auto listener = os::listen_tcp({"127.0.0.1", 0});
  auto fd = os::connect_tcp_by({&listener->bound, 1}, soon());
  ASSERT_TRUE(fd.ok());
  const auto deadline = SteadyClock().now() + std::chrono::milliseconds(50);
  const auto greeted = greet_by(std::move(fd).value(), Role::Initiator, random_key(), {}, deadline);
  EXPECT_EQ(greeted.status().code(), Code::Timeout);
}

}  // namespace
}  // namespace ronde::member
