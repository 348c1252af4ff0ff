// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <memory>

#include "os/sockaddr.h"

namespace ronde::os {
namespace {

Result<uint16_t> parse_port(std::string_view digits, std::string_view whole) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) {
    return Status(Code::InvalidArgument,
                  cat("'", whole, "': '", digits, "' is not a port; expected a number from 1 to 65535"));
  }
  return port;
}

Status bad_address(std::string_view text, std::string_view why) {
  return Status(Code::InvalidArgument, cat("'", text, "' ", why, "; expected HOST:PORT or [IPV6]:PORT"));
}

using AddrInfo = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// The system's own time-outs bound the look-up; numeric hosts ask nobody.
int look_up(const Address& name, int flags, AddrInfo& out) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(name.host.c_str(), cat(name.port).c_str(), &hints, &list);
  if (error == 0) out.reset(list);
  return error;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

// Link-local addresses of IPv6 mean nothing to another host without a scope of its own.
bool is_of_use(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return false;
  if (entry.ifa_addr->sa_family == AF_INET) return true;
  return entry.ifa_addr->sa_family == AF_INET6 &&
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr);
}

socklen_t length_of(const sockaddr* address) {
  return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

}  // namespace

std::string Address::to_string() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? cat('[', host, "]:", port) : cat(host, ':', port);
}

Result<Address> parse_host_port(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return bad_address(text, "has no closing bracket");
    if (close + 1 != colon) return bad_address(text, "has no port");
    if (close == 1) return bad_address(text, "names no host");
    RONDE_ASSIGN(const uint16_t port, parse_port(text.substr(colon + 1), text));
    return Address{std::string(text.substr(1, close - 1)), port};
  }
  if (colon == std::string_view::npos) return bad_address(text, "has no port");
  if (colon == 0) return bad_address(text, "names no host");
  if (text.find(':') != colon) return bad_address(text, "has an IPv6 address without brackets");
  RONDE_ASSIGN(const uint16_t port, parse_port(text.substr(colon + 1), text));
  return Address{std::string(text.substr(0, colon)), port};
}

Result<std::vector<Address>> resolve(const Address& name) {
  if (name.host.empty()) return Status(Code::InvalidArgument, "an empty host name cannot be resolved");
  AddrInfo list(nullptr, &::freeaddrinfo);
  if (const int error = look_up(name, 0, list); error != 0) {
    return Status(error == EAI_MEMORY ? Code::ResourceExhausted : Code::InvalidArgument,
                  cat("host name '", name.host, "' does not resolve: ", ::gai_strerror(error),
                      "; check its spelling, /etc/hosts and DNS on this machine, or give a numeric address"));
  }
  std::vector<Address> out;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    Address address = from_sockaddr(entry->ai_addr, entry->ai_addrlen);
    if (std::find(out.begin(), out.end(), address) == out.end()) out.push_back(std::move(address));
  }
  return out;
}

Result<std::vector<Address>> local_addresses() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return system_error("list the network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, &::freeifaddrs);
  std::vector<Address> out;
  std::vector<Address> loopback;
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    if (!is_of_use(*entry)) continue;
    auto& into = is_loopback(entry->ifa_addr) ? loopback : out;
    into.push_back(from_sockaddr(entry->ifa_addr, length_of(entry->ifa_addr)));
  }
  out.insert(out.end(), loopback.begin(), loopback.end());
  return out;
}

Result<SockAddr> to_sockaddr(const Address& address) {
  AddrInfo list(nullptr, &::freeaddrinfo);
  if (address.host.empty() || look_up(address, AI_NUMERICHOST, list) != 0) {
    return Status(Code::InvalidArgument,
                  cat("'", address.host, "' is not a numeric address such as 10.0.0.1 or fd77::1"));
  }
  SockAddr out;
  std::memcpy(&out.storage, list->ai_addr, list->ai_addrlen);
  out.length = list->ai_addrlen;
  return out;
}

Address from_sockaddr(const sockaddr* address, socklen_t length) {
  sockaddr_in plain{};
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
      plain.sin_family = AF_INET;
      plain.sin_port = v6->sin6_port;
      std::memcpy(&plain.sin_addr, v6->sin6_addr.s6_addr + 12, 4);
      address = reinterpret_cast<const sockaddr*>(&plain);
      length = sizeof plain;
    }
  }
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(address, length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  Address out{host, 0};
  std::from_chars(port, port + std::strlen(port), out.port);
  return out;
}

Result<SockAddr> abstract_sockaddr(const std::string& name) {
  SockAddr out;
  auto* un = reinterpret_cast<sockaddr_un*>(&out.storage);
  if (name.empty() || name.size() > sizeof un->sun_path - 1) {
    return Status(Code::InvalidArgument, cat("the name of an abstract socket has ", name.size(),
                                             " bytes; expected 1 to ", sizeof un->sun_path - 1));
  }
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path + 1, name.data(), name.size());
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return out;
}

}  // namespace ronde::os
