// SPDX-License-Identifier: Apache-2.0
#include "engine/connect.h"

#include <algorithm>

#include "base/log.h"
#include "control/tcp_carrier.h"

namespace ronde::engine {
namespace {

Bytes encode(const os::Address& address) {
  Writer out;
  out.put_string(address.host).put(address.port);
  return out.take();
}

Result<os::Address> decode_address(ByteSpan bytes) {
  Reader in(bytes);
  os::Address out;
  out.host = in.get_string(256);
  out.port = in.get<uint16_t>();
  RONDE_TRY(in.finish("address"));
  return out;
}

Result<os::Listener> listen_for_peers(const Parts& parts) {
  const std::string& given = parts.settings.listen;
  if (given.empty()) return os::listen_tcp({.host = parts.store->own_address().host, .port = 0});
  auto listener = os::listen_on_name(given);
  if (!listener.ok()) return listener.status().with_context(cat("RONDE_LISTEN=", given));
  return listener;
}

Result<std::vector<std::vector<os::Address>>> exchange_addresses(Parts& parts, Time deadline) {
  RONDE_ASSIGN(const std::vector<Bytes> blobs,
               parts.store->exchange("addresses", encode(parts.greeter->address()), deadline));
  std::vector<std::vector<os::Address>> out;
  for (const Bytes& blob : blobs) {
    RONDE_ASSIGN(os::Address address, decode_address(blob));
    out.push_back({std::move(address)});
  }
  return out;
}

void make_links(Parts& parts, const member::Key& key, const std::vector<std::vector<os::Address>>& addresses) {
  std::vector<std::string> names;
  for (const Peer& peer : parts.topology.peers) names.push_back(peer.name);
  parts.links =
      std::make_unique<transport::TcpLinkTable>(transport::TcpLinkTable::Options{.rank = parts.topology.rank,
                                                                                 .epoch = parts.topology.epoch,
                                                                                 .key = key,
                                                                                 .addresses = addresses,
                                                                                 .peer_names = std::move(names),
                                                                                 .events = parts.events.get(),
                                                                                 .clock = parts.time.clock});
}

Status connect_to_coordinator(Parts& parts, const member::Key& key, std::span<const os::Address> addresses,
                              Time deadline) {
  const std::string& name = parts.topology.peers[0].name;
  const member::Identity self{
      .purpose = member::Purpose::Control, .rank = parts.topology.rank, .called = 0, .epoch = parts.topology.epoch};
  auto greeted = member::call_by([&] { return os::connect_tcp_by(addresses, deadline); }, key, self, deadline);
  if (!greeted.ok()) return greeted.status().with_context(cat("rank ", self.rank, " cannot reach ", name));
  RONDE_ASSIGN(parts.coordinator,
               control::make_tcp_carrier(std::move(greeted).value(), true, name, parts.events.get()));
  return {};
}

std::string missing(const Parts& parts) {
  std::string out;
  for (size_t r = 1; r < parts.ranks.size(); ++r) {
    if (!parts.ranks[r]) out += cat(out.empty() ? "" : ", ", parts.topology.peers[r].name);
  }
  return out;
}

Status take_connection(Parts& parts, member::Greeted connection) {
  const member::Identity peer = connection.peer;
  if (peer.purpose == member::Purpose::Data) return parts.links->adopt(std::move(connection));
  const bool expected = peer.purpose == member::Purpose::Control && peer.epoch == parts.topology.epoch &&
                        peer.rank > 0 && peer.rank < parts.topology.size &&
                        !parts.ranks[static_cast<size_t>(peer.rank)];
  if (!expected)
    return Status(Code::Internal, cat("rank ", peer.rank, " of epoch ", peer.epoch, " connected unexpectedly"));
  RONDE_ASSIGN(
      parts.ranks[static_cast<size_t>(peer.rank)],
      control::make_tcp_carrier(std::move(connection), false, parts.topology.peers[static_cast<size_t>(peer.rank)].name,
                                parts.events.get()));
  return {};
}

Status accept_ranks(Parts& parts, Time deadline) {
  parts.ranks.resize(static_cast<size_t>(parts.topology.size));
  while (!missing(parts).empty()) {
    const Time now = std::chrono::steady_clock::now();
    if (now >= deadline) {
      return Status(Code::Timeout, cat("no control connection came from ", missing(parts), " within the init_timeout"));
    }
    const int fds[] = {parts.events->fd()};
    os::sleep_until_readable(fds, std::min(deadline, parts.greeter->next_deadline()));
    parts.events->collect();
    for (member::Greeted& connection : parts.greeter->take(std::chrono::steady_clock::now())) {
      if (Status status = take_connection(parts, std::move(connection)); !status.ok()) log_warning(status.message());
    }
  }
  return {};
}

}  // namespace

Status connect_over_tcp(Parts& parts, const member::Key& key, Time deadline) {
  RONDE_ASSIGN(os::Listener listener, listen_for_peers(parts));
  parts.greeter = std::make_unique<member::Greeter>(std::move(listener), key, parts.topology.rank, parts.events.get());
  RONDE_ASSIGN(const auto addresses, exchange_addresses(parts, deadline));
  make_links(parts, key, addresses);
  if (parts.topology.rank == 0) return accept_ranks(parts, deadline);
  return connect_to_coordinator(parts, key, addresses[0], deadline);
}

}  // namespace ronde::engine
