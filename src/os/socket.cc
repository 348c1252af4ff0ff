// SPDX-License-Identifier: Apache-2.0
// Sockets as they come to be: listening, accepting, connecting, options.
#include "os/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>

#include "os/event_set.h"
#include "os/sockaddr.h"

namespace ronde::os {
namespace {

Result<Fd> make_socket(int family, int flags = SOCK_NONBLOCK) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd.valid()) return system_error("create a socket", errno);
  return fd;
}

Status set_option(const Fd& fd, int level, int option, int value) {
  if (::setsockopt(fd.get(), level, option, &value, sizeof value) == 0) return {};
  return system_error("set an option of a socket", errno);
}

Status bind_and_listen(const Fd& fd, const SockAddr& address, int backlog) {
  if (::bind(fd.get(), address.get(), address.length) != 0) return system_error("bind", errno);
  if (::listen(fd.get(), backlog) != 0) return system_error("listen", errno);
  return {};
}

Result<Listener> listen_numeric(const Address& address, int backlog, bool both_families) {
  RONDE_ASSIGN(const SockAddr sockaddr, to_sockaddr(address));
  RONDE_ASSIGN(Fd fd, make_socket(sockaddr.family()));
  RONDE_TRY(set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1));
  if (both_families) RONDE_TRY(set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0));
  RONDE_TRY(bind_and_listen(fd, sockaddr, backlog));
  Address bound = own_address(fd);
  return Listener{std::move(fd), std::move(bound)};
}

using NameCall = int (*)(int, ::sockaddr*, socklen_t*);

Address address_by(NameCall call, const Fd& fd) {
  SockAddr out;
  out.length = sizeof out.storage;
  if (call(fd.get(), out.get(), &out.length) != 0) return {};
  return from_sockaddr(out.get(), out.length);
}

// What a connection in the queue died of is no error of the listener.
bool is_error_of_the_connection(int error) {
  constexpr int kErrors[] = {EINTR,     ECONNABORTED, EPROTO,       ENETDOWN,   ENOPROTOOPT,
                             EHOSTDOWN, ENONET,       EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH};
  return std::find(std::begin(kErrors), std::end(kErrors), error) != std::end(kErrors);
}

Result<Fd> connect_one_by(const Address& address, Time deadline) {
  RONDE_ASSIGN(Fd fd, start_connect_tcp(address));
  if (!sleep_until_writable(fd.get(), deadline)) return Status(Code::Timeout, "no answer");
  RONDE_TRY(connect_error(fd));
  return fd;
}

}  // namespace

Result<Listener> listen_tcp(const Address& address, int backlog) {
  if (!address.host.empty()) {
    auto listener = listen_numeric(address, backlog, false);
    if (listener.ok()) return listener;
    return listener.status().with_context(cat("cannot listen on ", address.to_string()));
  }
  auto both = listen_numeric({"::", address.port}, backlog, true);
  if (both.ok()) return both;
  auto v4 = listen_numeric({"0.0.0.0", address.port}, backlog, false);  // a machine without IPv6
  if (v4.ok()) return v4;
  return v4.status().with_context(cat("cannot listen on port ", address.port));
}

Result<Listener> listen_on_name(const std::string& host) {
  RONDE_ASSIGN(const auto addresses, resolve({.host = host, .port = 0}));
  auto listener = listen_tcp(addresses.front());
  if (listener.ok()) return listener;
  return Status(listener.status().code(),
                cat(listener.status().message(), "; give an address or a host name of this machine"));
}

Result<Fd> listen_unix(const std::string& abstract_name, int backlog) {
  RONDE_ASSIGN(const SockAddr address, abstract_sockaddr(abstract_name));
  RONDE_ASSIGN(Fd fd, make_socket(AF_UNIX));
  const Status status = bind_and_listen(fd, address, backlog);
  if (!status.ok()) return status.with_context(cat("cannot listen on abstract socket @", abstract_name));
  return fd;
}

Result<Fd> accept_now(const Fd& listener) {
  for (;;) {
    Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      // Fails on a Unix socket, which has no delay.
      (void)set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
      return fd;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Fd();
    if (!is_error_of_the_connection(errno)) return system_error("accept a connection", errno);
  }
}

Result<Fd> start_connect_tcp(const Address& address) {
  RONDE_ASSIGN(const SockAddr sockaddr, to_sockaddr(address));
  RONDE_ASSIGN(Fd fd, make_socket(sockaddr.family()));
  RONDE_TRY(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1));
  // After EINTR the attempt goes on, like after EINPROGRESS.
  if (::connect(fd.get(), sockaddr.get(), sockaddr.length) != 0 && errno != EINPROGRESS && errno != EINTR) {
    return system_error("connect", errno);
  }
  return fd;
}

Status connect_error(const Fd& fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) return system_error("connect", error);
  // To a port of this machine where nobody listens, a socket can connect to itself.
  const Address peer = peer_address(fd);
  if (peer.port != 0 && peer == own_address(fd)) return system_error("connect", ECONNREFUSED);
  return {};
}

// An address that does not answer may use up its share of the time only.
Result<Fd> connect_tcp_by(std::span<const Address> addresses, Time deadline) {
  std::string tried;
  bool late = false;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto now = std::chrono::steady_clock::now();
    const auto share = (deadline - now) / static_cast<int64_t>(addresses.size() - i);
    auto fd = connect_one_by(addresses[i], deadline == kNever ? kNever : now + share);
    if (fd.ok()) return fd;
    late = late || fd.status().code() == Code::Timeout;
    tried += cat(i == 0 ? "" : "; ", addresses[i].to_string(), ": ", fd.status().message());
  }
  if (addresses.empty()) return Status(Code::InvalidArgument, "no address to connect to");
  return Status(late ? Code::Timeout : Code::System, cat("cannot connect (", tried, ")"));
}

// A Unix socket whose queue is full says EAGAIN to those who do not wait, and cannot be slept on; so this one waits in
// connect.
Result<Fd> connect_unix_by(const std::string& abstract_name, Time deadline) {
  RONDE_ASSIGN(const SockAddr address, abstract_sockaddr(abstract_name));
  RONDE_ASSIGN(Fd fd, make_socket(AF_UNIX, 0));
  for (;;) {
    const auto left = std::max<Duration>(deadline - std::chrono::steady_clock::now(), std::chrono::milliseconds(1));
    timeval limit{};  // zero: no limit
    if (deadline != kNever) {
      limit.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
      limit.tv_usec = std::chrono::duration_cast<std::chrono::microseconds>(left % std::chrono::seconds(1)).count();
    }
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(fd.get(), address.get(), address.length) == 0) break;
    if (errno == EINTR) continue;
    const auto what = cat("cannot connect to abstract socket @", abstract_name);
    if (errno == EAGAIN) return Status(Code::Timeout, cat(what, ": nobody accepted in time"));
    return system_error(what, errno);
  }
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) return system_error("make a socket non-blocking", errno);
  return fd;
}

// Probes begin after a third of the silence and repeat each third; TCP_USER_TIMEOUT bounds unacknowledged data too.
Status set_keepalive(const Fd& fd, Duration silence) {
  const auto millis = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(silence).count());
  const int third = std::max(1, millis / 3000);
  RONDE_TRY(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1));
  RONDE_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, third));
  RONDE_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, third));
  RONDE_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 2));
  return set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, millis);
}

Status set_receive_buffer(const Fd& fd, size_t bytes) {
  return set_option(fd, SOL_SOCKET, SO_RCVBUF, static_cast<int>(bytes));
}

Address peer_address(const Fd& fd) {
  return address_by(&::getpeername, fd);
}
Address own_address(const Fd& fd) {
  return address_by(&::getsockname, fd);
}

}  // namespace ronde::os
