// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/doorbell.h"
#include "os/event_set.h"
#include "os/socket.h"

namespace ronde::os {
namespace {

using namespace std::chrono_literals;

Time in(Duration span) {
  return std::chrono::steady_clock::now() + span;
}
bool rings(int fd) {
  return sleep_until_readable({&fd, 1}, Time{});
}

class PassFds : public testing::Test {
 protected:
  PassFds() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    a_ = Fd(fds[0]);
    b_ = Fd(fds[1]);
  }
  Fd a_, b_;
};

TEST_F(PassFds, arrive_in_order_and_are_closed_on_exec) {
  const Doorbell bells[] = {Doorbell::create().value(), Doorbell::create().value(), Doorbell::create().value()};
  const int fds[] = {bells[0].fd(), bells[1].fd(), bells[2].fd()};
  ASSERT_TRUE(send_fds_by(a_, fds, in(30s)).ok());
  const auto got = recv_fds_by(b_, 3, in(30s)).value();
  ASSERT_EQ(got.size(), 3u);
  bells[1].ring();
  EXPECT_FALSE(rings(got[0].get()));
  EXPECT_TRUE(rings(got[1].get()));
  EXPECT_FALSE(rings(got[2].get()));
  for (const Fd& fd : got) EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(PassFds, more_than_one_message_holds_arrive_too) {
  const Doorbell bell = Doorbell::create().value();
  const std::vector<int> fds(300, bell.fd());
  ASSERT_TRUE(send_fds_by(a_, fds, in(30s)).ok());
  EXPECT_EQ(recv_fds_by(b_, 300, in(30s)).value().size(), 300u);
}

TEST_F(PassFds, bytes_before_and_after_stay_in_place) {
  const Doorbell bell = Doorbell::create().value();
  const int fd = bell.fd();
  const Bytes before(5, std::byte{1});
  const Bytes after(5, std::byte{2});
  ASSERT_TRUE(write_all_by(a_, before, in(30s)).ok());
  ASSERT_TRUE(send_fds_by(a_, {&fd, 1}, in(30s)).ok());
  ASSERT_TRUE(write_all_by(a_, after, in(30s)).ok());
  Bytes got(5);
  ASSERT_TRUE(read_all_by(b_, got, in(30s)).ok());
  EXPECT_EQ(got, before);
  EXPECT_TRUE(recv_fds_by(b_, 1, in(30s)).ok());
  ASSERT_TRUE(read_all_by(b_, got, in(30s)).ok());
  EXPECT_EQ(got, after);
}

TEST_F(PassFds, fewer_or_none_are_errors) {
  const Doorbell bell = Doorbell::create().value();
  const int fds[] = {bell.fd(), bell.fd()};
  EXPECT_TRUE(send_fds_by(a_, {}, in(30s)).ok());
  EXPECT_TRUE(recv_fds_by(b_, 0, in(30s)).value().empty());
  EXPECT_EQ(recv_fds_by(b_, 1, in(10ms)).status().code(), Code::Timeout);
  ASSERT_TRUE(send_fds_by(a_, fds, in(30s)).ok());
  EXPECT_EQ(recv_fds_by(b_, 1, in(30s)).status().message(), "expected 1 descriptors, got 2");
  ASSERT_TRUE(write_all_by(a_, Bytes(1), in(30s)).ok());
  EXPECT_EQ(recv_fds_by(b_, 1, in(30s)).status().code(), Code::Internal);
  a_.reset();
  EXPECT_EQ(recv_fds_by(b_, 1, in(30s)).status().code(), Code::PeerLost);
  EXPECT_EQ(send_fds_by(b_, fds, in(30s)).code(), Code::PeerLost);
}

TEST_F(PassFds, a_receiver_out_of_descriptors_says_so) {
  const Doorbell bell = Doorbell::create().value();
  const std::vector<int> fds(20, bell.fd());
  ASSERT_TRUE(send_fds_by(a_, fds, in(30s)).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit few{static_cast<rlim_t>(b_.get() + 4), static_cast<rlim_t>(b_.get() + 4)};
    ::setrlimit(RLIMIT_NOFILE, &few);
    ::_exit(recv_fds_by(b_, 20, in(30s)).status().code() == Code::ResourceExhausted ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ronde::os
