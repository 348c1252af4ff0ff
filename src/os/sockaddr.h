// SPDX-License-Identifier: Apache-2.0
// Between Address and the system's sockaddr. For os/*.cc only.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "os/socket.h"

namespace ronde::os {

struct SockAddr {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// The host must be numeric.
Result<SockAddr> to_sockaddr(const Address& address);
// IPv4 inside IPv6 ("::ffff:10.0.0.1", as a socket for both sees it) becomes plain IPv4.
Address from_sockaddr(const sockaddr* address, socklen_t length);
Result<SockAddr> abstract_sockaddr(const std::string& name);

}  // namespace ronde::os
