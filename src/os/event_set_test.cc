// SPDX-License-Identifier: Apache-2.0
#include "os/event_set.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "os/doorbell.h"

namespace ronde::os {
namespace {

using namespace std::chrono_literals;

Time in(Duration span) {
  return std::chrono::steady_clock::now() + span;
}
bool readable_now(int fd) {
  return sleep_until_readable({&fd, 1}, Time{});
}

struct Recorder : EventSet::Source {
  int readable = 0;
  int writable = 0;
  std::function<void()> then;
  void on_ready(bool can_read, bool can_write) override {
    readable += can_read ? 1 : 0;
    writable += can_write ? 1 : 0;
    if (then) then();
  }
};

struct Pair {
  Fd a, b;
  Pair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    a = Fd(fds[0]);
    b = Fd(fds[1]);
  }
};

class Events : public testing::Test {
 protected:
  EventSet events_ = EventSet::create().value();
  Recorder source_;
  Pair pair_;
};

TEST_F(Events, each_edge_is_told_once) {
  ASSERT_TRUE(events_.add(pair_.a.get(), &source_).ok());
  EXPECT_EQ(events_.collect(), 1);  // writable from the start
  EXPECT_EQ(source_.writable, 1);
  EXPECT_EQ(source_.readable, 0);
  EXPECT_EQ(events_.collect(), 0);
  ASSERT_EQ(::write(pair_.b.get(), "x", 1), 1);
  EXPECT_EQ(events_.collect(), 1);
  EXPECT_EQ(source_.readable, 1);
  EXPECT_EQ(events_.collect(), 0);  // still unread, no new edge
  ASSERT_EQ(::write(pair_.b.get(), "x", 1), 1);
  EXPECT_EQ(events_.collect(), 1);
  EXPECT_EQ(source_.readable, 2);
}

TEST_F(Events, a_closed_peer_is_readable_and_writable) {
  ASSERT_TRUE(events_.add(pair_.a.get(), &source_).ok());
  events_.collect();
  pair_.b.reset();
  EXPECT_EQ(events_.collect(), 1);
  EXPECT_EQ(source_.readable, 1);
  EXPECT_EQ(source_.writable, 2);
}

TEST_F(Events, space_in_a_full_socket_is_an_edge) {
  ASSERT_TRUE(events_.add(pair_.a.get(), &source_).ok());
  char piece[4096] = {};
  while (::write(pair_.a.get(), piece, sizeof piece) > 0) {
  }
  events_.collect();
  const int before = source_.writable;
  EXPECT_EQ(events_.collect(), 0);
  while (::read(pair_.b.get(), piece, sizeof piece) > 0) {
  }
  EXPECT_EQ(events_.collect(), 1);
  EXPECT_EQ(source_.writable, before + 1);
}

TEST_F(Events, the_set_itself_can_be_slept_on) {
  ASSERT_TRUE(events_.add(pair_.a.get(), &source_).ok());
  events_.collect();
  EXPECT_FALSE(readable_now(events_.fd()));
  ASSERT_EQ(::write(pair_.b.get(), "x", 1), 1);
  EXPECT_TRUE(readable_now(events_.fd()));
  events_.collect();
  EXPECT_FALSE(readable_now(events_.fd()));
}

TEST_F(Events, a_removed_source_is_not_told) {
  ASSERT_TRUE(events_.add(pair_.a.get(), &source_).ok());
  events_.remove(pair_.a.get());
  events_.remove(pair_.a.get());
  EXPECT_EQ(events_.collect(), 0);
  EXPECT_TRUE(events_.add(pair_.a.get(), &source_).ok());
  EXPECT_EQ(events_.collect(), 1);
}

TEST_F(Events, sources_may_remove_each_other_while_being_told) {
  Recorder other;
  ASSERT_TRUE(events_.add(pair_.a.get(), &source_).ok());
  ASSERT_TRUE(events_.add(pair_.b.get(), &other).ok());
  const auto remove_both = [this] {
    events_.remove(pair_.a.get());
    events_.remove(pair_.b.get());
  };
  source_.then = remove_both;
  other.then = remove_both;
  EXPECT_EQ(events_.collect(), 1);
  EXPECT_EQ(source_.writable + other.writable, 1);
}

TEST_F(Events, more_sources_than_are_asked_for_at_once_are_all_told) {
  constexpr int kMany = 150;
  std::vector<Doorbell> bells;
  std::vector<Recorder> sources(kMany);
  for (int i = 0; i < kMany; ++i) {
    bells.push_back(Doorbell::create().value());
    ASSERT_TRUE(events_.add(bells.back().fd(), &sources[i]).ok());
  }
  events_.collect();
  for (const Doorbell& bell : bells) bell.ring();
  EXPECT_EQ(events_.collect(), kMany);
  for (const Recorder& source : sources) EXPECT_EQ(source.readable, 1);
}

TEST_F(Events, watching_a_closed_descriptor_or_one_twice_is_an_error) {
  ASSERT_TRUE(events_.add(pair_.a.get(), &source_).ok());
  EXPECT_FALSE(events_.add(pair_.a.get(), &source_).ok());
  EXPECT_FALSE(events_.add(9999, &source_).ok());
}

TEST(Sleep, ends_at_the_deadline_and_not_before) {
  const Doorbell bell = Doorbell::create().value();
  const int fd = bell.fd();
  const Time deadline = in(20ms);
  EXPECT_FALSE(sleep_until_readable({&fd, 1}, deadline));
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
  EXPECT_FALSE(sleep_until_readable({&fd, 1}, deadline));  // passed already
}

TEST(Sleep, without_descriptors_is_a_pause) {
  const Time deadline = in(5ms);
  EXPECT_FALSE(sleep_until_readable({}, deadline));
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

TEST(Sleep, any_of_many_descriptors_ends_it) {
  for (const size_t count : {1, 2, 16, 17, 40}) {
    std::vector<Doorbell> bells;
    std::vector<int> fds;
    for (size_t i = 0; i < count; ++i) {
      bells.push_back(Doorbell::create().value());
      fds.push_back(bells.back().fd());
    }
    EXPECT_FALSE(sleep_until_readable(fds, Time{})) << count;
    bells.back().ring();
    EXPECT_TRUE(sleep_until_readable(fds, kNever)) << count;
  }
}

TEST(Sleep, a_signal_does_not_end_it) {
  static std::atomic<int> signals{0};
  struct sigaction old {};
  struct sigaction action {};
  action.sa_handler = [](int) { signals.fetch_add(1); };
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &old), 0);  // no SA_RESTART: ppoll says EINTR
  const Doorbell bell = Doorbell::create().value();
  std::atomic<bool> ended{false};
  bool readable = false;
  std::thread sleeper([&] {
    const int fd = bell.fd();
    readable = sleep_until_readable({&fd, 1}, kNever);
    ended.store(true);
  });
  for (int sent = 1; sent <= 3; ++sent) {
    ::pthread_kill(sleeper.native_handle(), SIGUSR2);
    const Time limit = in(30s);
    while (signals.load() < sent && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(signals.load(), sent);
  }
  sleep_until_readable({}, in(10ms));
  EXPECT_FALSE(ended.load());
  bell.ring();
  sleeper.join();
  EXPECT_TRUE(readable);
  ::sigaction(SIGUSR2, &old, nullptr);
}

TEST(Sleep, for_space_to_write) {
  Pair pair;
  EXPECT_TRUE(sleep_until_writable(pair.a.get(), Time{}));
  char piece[4096] = {};
  while (::write(pair.a.get(), piece, sizeof piece) > 0) {
  }
  EXPECT_FALSE(sleep_until_writable(pair.a.get(), in(5ms)));
  pair.b.reset();
  EXPECT_TRUE(sleep_until_writable(pair.a.get(), kNever));
}

TEST(SleepDeathTest, on_a_closed_descriptor_is_a_bug) {
  EXPECT_DEATH(sleep_until_writable(9999, Time{}), "slept on a closed descriptor");
}

}  // namespace
}  // namespace ronde::os
