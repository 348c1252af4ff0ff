// SPDX-License-Identifier: Apache-2.0
// Sockets: addresses as values, TCP over IPv4 and IPv6, abstract Unix sockets, passing of descriptors. All sockets made
// here are non-blocking and close-on-exec; TCP has no delay. The *_by calls wait, with a deadline, for code that runs
// before the engine does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "os/fd.h"

namespace ronde::os {

// A numeric address and port: "10.0.0.1:29400", "[fd77::1]:29400".
struct Address {
  std::string host;  // numeric, without brackets; may carry a scope
  uint16_t port = 0;
  bool operator==(const Address&) const = default;
  std::string to_string() const;
};

// Splits "host:port" and "[v6]:port", of a place to connect to: the host may be a name, and port 0 is none.
Result<Address> parse_host_port(std::string_view text);
// Names to numeric addresses, in the system's order. The error names the host.
Result<std::vector<Address>> resolve(const Address& name);
// Addresses of this machine's interfaces that are up, loopback last.
Result<std::vector<Address>> local_addresses();

struct Listener {
  Fd fd;
  Address bound;  // with the port that the kernel chose
};
// host "" means every address (IPv6 and IPv4). port 0: the kernel chooses.
Result<Listener> listen_tcp(const Address& address, int backlog = 128);
// On the first address of a name, at a port that the kernel chooses. The error says what would be right.
Result<Listener> listen_on_name(const std::string& host);
// Abstract: no file; visible in this network namespace only.
Result<Fd> listen_unix(const std::string& abstract_name, int backlog = 128);
// The next connection, or an invalid Fd if there is none now.
Result<Fd> accept_now(const Fd& listener);

// Begins to connect; writable or in error later: ask connect_error.
Result<Fd> start_connect_tcp(const Address& address);
Status connect_error(const Fd& fd);
// Tries each address until one connects; the error lists every address with its errno.
Result<Fd> connect_tcp_by(std::span<const Address> addresses, Time deadline);
Result<Fd> connect_unix_by(const std::string& abstract_name, Time deadline);

// As much as possible now. 0: would block. End of stream is an error of code PeerLost with the text "closed the
// connection".
Result<size_t> read_some(const Fd& fd, std::span<std::byte> into);
Result<size_t> write_some(const Fd& fd, std::span<const ByteSpan> pieces);
// All of it, by the deadline.
Status read_all_by(const Fd& fd, std::span<std::byte> into, Time deadline);
Status write_all_by(const Fd& fd, ByteSpan bytes, Time deadline);

// Descriptors over a Unix socket, together with at least one byte.
Status send_fds_by(const Fd& fd, std::span<const int> fds, Time deadline);
Result<std::vector<Fd>> recv_fds_by(const Fd& fd, size_t count, Time deadline);

// For control links: told within `silence` when the peer's host is gone; a stopped process is not taken for it.
Status set_keepalive(const Fd& fd, Duration silence);
// How much a peer may send that nobody here has read. The system takes it as a wish and has a limit.
Status set_receive_buffer(const Fd& fd, size_t bytes);
Address peer_address(const Fd& fd);
Address own_address(const Fd& fd);

}  // namespace ronde::os
