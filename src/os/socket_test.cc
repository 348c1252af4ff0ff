// SPDX-License-Identifier: Apache-2.0
#include "os/socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "os/event_set.h"

namespace ronde::os {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

Time in(Duration span) {
  return std::chrono::steady_clock::now() + span;
}

Fd accept_by(const Fd& listener) {
  const int raw = listener.get();
  EXPECT_TRUE(sleep_until_readable({&raw, 1}, in(30s)));
  return accept_now(listener).value();
}

int option(const Fd& fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(::getsockopt(fd.get(), level, name, &value, &length), 0);
  return value;
}

void expect_nonblocking_and_cloexec(const Fd& fd) {
  EXPECT_NE(::fcntl(fd.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

// A port of the loopback where nobody listens: bound, so that nobody gets it meanwhile.
struct DeafPort {
  Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Address address;
  DeafPort() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    address = own_address(fd);
  }
};

class OverFamily : public testing::TestWithParam<const char*> {};

TEST_P(OverFamily, a_connection_is_made_and_both_ends_know_the_addresses) {
  const Listener listener = listen_tcp({GetParam(), 0}).value();
  ASSERT_NE(listener.bound.port, 0);
  EXPECT_EQ(listener.bound.host, GetParam());
  EXPECT_FALSE(accept_now(listener.fd).value().valid());
  const Fd client = connect_tcp_by({&listener.bound, 1}, in(30s)).value();
  const Fd server = accept_by(listener.fd);
  EXPECT_EQ(peer_address(client), listener.bound);
  EXPECT_EQ(own_address(server), listener.bound);
  EXPECT_EQ(peer_address(server), own_address(client));
  for (const Fd* fd : {&client, &server}) {
    expect_nonblocking_and_cloexec(*fd);
    EXPECT_NE(option(*fd, IPPROTO_TCP, TCP_NODELAY), 0);
  }
  expect_nonblocking_and_cloexec(listener.fd);
}

INSTANTIATE_TEST_SUITE_P(Loopback, OverFamily, testing::Values("127.0.0.1", "::1"),
                         [](const auto& row) { return row.index == 0 ? "IPv4" : "IPv6"; });

TEST(ListenTcp, without_a_host_takes_both_families_and_shows_plain_ipv4) {
  const Listener listener = listen_tcp({"", 0}).value();
  for (const char* host : {"127.0.0.1", "::1"}) {
    const Address address{host, listener.bound.port};
    const Fd client = connect_tcp_by({&address, 1}, in(30s)).value();
    EXPECT_EQ(peer_address(accept_by(listener.fd)).host, host);
  }
}

TEST(ListenTcp, errors_tell_the_address_and_the_reason) {
  const Listener taken = listen_tcp({"127.0.0.1", 0}).value();
  EXPECT_THAT(listen_tcp(taken.bound).status().message(),
              AllOf(HasSubstr(taken.bound.to_string()), HasSubstr("Address already in use")));
  EXPECT_THAT(listen_tcp({"192.0.2.1", 0}).status().message(),
              AllOf(HasSubstr("192.0.2.1"), HasSubstr("Cannot assign requested address")));
  EXPECT_THAT(listen_tcp({"a-name", 0}).status().message(), HasSubstr("'a-name' is not a numeric address"));
  const Listener everywhere = listen_tcp({"", 0}).value();
  EXPECT_THAT(listen_tcp({"", everywhere.bound.port}).status().message(), HasSubstr(cat(everywhere.bound.port)));
}

TEST(ConnectTcp, tries_each_address_until_one_answers) {
  const DeafPort deaf;
  const Listener listener = listen_tcp({"127.0.0.1", 0}).value();
  const Address addresses[] = {deaf.address, listener.bound};
  const Fd fd = connect_tcp_by(addresses, in(30s)).value();
  EXPECT_EQ(peer_address(fd), listener.bound);
}

TEST(ConnectTcp, failure_lists_every_address_with_its_reason) {
  const DeafPort first;
  const DeafPort second;
  const Address addresses[] = {first.address, second.address, {"bad", 1}};
  const auto fd = connect_tcp_by(addresses, in(30s));
  ASSERT_FALSE(fd.ok());
  EXPECT_EQ(fd.status().code(), Code::System);
  EXPECT_EQ(fd.status().message(), cat("cannot connect (", first.address.to_string(), ": connect: Connection refused; ",
                                       second.address.to_string(),
                                       ": connect: Connection refused; bad:1: 'bad' is not a "
                                       "numeric address such as 10.0.0.1 or fd77::1)"));
  EXPECT_EQ(connect_tcp_by({}, kNever).status().code(), Code::InvalidArgument);
}

// A listener whose queue is full does not answer.
TEST(ConnectTcp, an_address_without_answer_uses_its_share_of_the_time_only) {
  const Listener full = listen_tcp({"127.0.0.1", 0}, 0).value();
  std::vector<Fd> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(start_connect_tcp(full.bound).value());
  EXPECT_EQ(connect_tcp_by({&full.bound, 1}, in(30ms)).status().code(), Code::Timeout);
  EXPECT_THAT(connect_tcp_by({&full.bound, 1}, in(10ms)).status().message(),
              HasSubstr(cat(full.bound.to_string(), ": no answer")));
  const Listener open = listen_tcp({"127.0.0.1", 0}).value();
  const Address addresses[] = {full.bound, open.bound};
  EXPECT_TRUE(connect_tcp_by(addresses, in(400ms)).ok());
}

TEST(ConnectTcp, a_started_connection_tells_its_error_when_it_is_ready) {
  const DeafPort deaf;
  const Fd fd = start_connect_tcp(deaf.address).value();
  ASSERT_TRUE(sleep_until_writable(fd.get(), in(30s)));
  EXPECT_EQ(connect_error(fd).message(), "connect: Connection refused");
}

TEST(ConnectTcp, a_socket_connected_to_itself_counts_as_refused) {
  const DeafPort port;
  sockaddr_in name{};
  socklen_t length = sizeof name;
  ASSERT_EQ(::getsockname(port.fd.get(), reinterpret_cast<sockaddr*>(&name), &length), 0);
  ASSERT_EQ(::connect(port.fd.get(), reinterpret_cast<sockaddr*>(&name), length), 0);
  EXPECT_EQ(connect_error(port.fd).message(), "connect: Connection refused");
}

std::string unix_name(const char* what) {
  return cat("ronde-test-", ::getpid(), "-", what);
}

TEST(UnixSocket, connects_by_its_abstract_name) {
  const Fd listener = listen_unix(unix_name("a")).value();
  const Fd client = connect_unix_by(unix_name("a"), in(30s)).value();
  const Fd server = accept_by(listener);
  ASSERT_TRUE(server.valid());
  expect_nonblocking_and_cloexec(client);
  expect_nonblocking_and_cloexec(server);
}

TEST(UnixSocket, errors_name_the_socket) {
  EXPECT_THAT(connect_unix_by(unix_name("none"), in(1s)).status().message(),
              AllOf(HasSubstr(cat("@", unix_name("none"))), HasSubstr("Connection refused")));
  const Fd listener = listen_unix(unix_name("b")).value();
  EXPECT_THAT(listen_unix(unix_name("b")).status().message(),
              AllOf(HasSubstr(cat("@", unix_name("b"))), HasSubstr("Address already in use")));
  EXPECT_THAT(listen_unix(std::string(108, 'x')).status().message(), HasSubstr("has 108 bytes; expected 1 to 107"));
  EXPECT_TRUE(listen_unix(std::string(107, 'x')).ok());
  EXPECT_FALSE(connect_unix_by("", kNever).ok());
}

TEST(UnixSocket, a_full_queue_is_a_timeout_and_then_goes_on) {
  const Fd listener = listen_unix(unix_name("full"), 0).value();
  const Fd first = connect_unix_by(unix_name("full"), in(30s)).value();
  const auto second = connect_unix_by(unix_name("full"), in(20ms));
  EXPECT_EQ(second.status().code(), Code::Timeout);
  std::thread accepter([&] { accept_by(listener); });
  EXPECT_TRUE(connect_unix_by(unix_name("full"), in(30s)).ok());
  accepter.join();
}

TEST(Keepalive, probes_start_before_the_silence_is_over) {
  const Listener listener = listen_tcp({"127.0.0.1", 0}).value();
  const Fd fd = connect_tcp_by({&listener.bound, 1}, in(30s)).value();
  ASSERT_TRUE(set_keepalive(fd, 15s).ok());
  EXPECT_NE(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 15000);
  const int idle = option(fd, IPPROTO_TCP, TCP_KEEPIDLE);
  EXPECT_LE(idle + option(fd, IPPROTO_TCP, TCP_KEEPINTVL) * option(fd, IPPROTO_TCP, TCP_KEEPCNT), 15);
  EXPECT_TRUE(set_keepalive(fd, 10ms).ok());
  EXPECT_GE(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
}

}  // namespace
}  // namespace ronde::os
