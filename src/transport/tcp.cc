// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp.h"

#include <algorithm>
#include <map>

#include "transport/tcp_link.h"

namespace ronde::transport {

struct TcpLinkTable::State {
  Options options;
  std::map<std::pair<int32_t, int>, TcpLink> links;
  Status closed;

  TcpLink& open(int32_t peer, int stream);
  std::string link_name(int32_t peer) const;
  Status check(const member::Identity& peer) const;
};

TcpLinkTable::TcpLinkTable(Options options) : state_(new State{std::move(options), {}, {}}) {}
TcpLinkTable::~TcpLinkTable() = default;

// "rank 0 to rank 3 (host b, pid 17)".
std::string TcpLinkTable::State::link_name(int32_t peer) const {
  const auto index = static_cast<size_t>(peer);
  const auto& names = options.peer_names;
  return cat("data link of rank ", options.rank, " to ", index < names.size() ? names[index] : cat("rank ", peer));
}

TcpLink& TcpLinkTable::State::open(int32_t peer, int stream) {
  const auto [at, made] = links.try_emplace({peer, stream}, link_name(peer), options.events, options.clock);
  TcpLink& link = at->second;
  if (!made) return link;
  if (!closed.ok()) {
    link.close(closed);
  } else if (options.rank < peer) {
    link.connect({.addresses = options.addresses[static_cast<size_t>(peer)],
                  .key = options.key,
                  .self = {.purpose = member::Purpose::Data,
                           .rank = options.rank,
                           .called = peer,
                           .epoch = options.epoch,
                           .stream = static_cast<uint32_t>(stream)},
                  .events = options.events,
                  .patience = options.connect_timeout});
    (void)link.advance();  // begins now; an error is kept and comes with the next advance
  }
  return link;
}

Link& TcpLinkTable::link(int32_t peer, int stream) {
  const bool known = peer >= 0 && static_cast<size_t>(peer) < state_->options.addresses.size();
  RONDE_CHECK(known && peer != state_->options.rank, "a link leads to another rank of the job");
  RONDE_CHECK(stream >= 0 && stream < kMaxStreams, "a stream beyond those that a peer accepts");
  return state_->open(peer, stream);
}

Status TcpLinkTable::State::check(const member::Identity& peer) const {
  if (!closed.ok()) return closed;
  const auto refuse = [&](std::string_view why) {
    return Status(Code::Internal, cat("refused a data connection from rank ", peer.rank, " (epoch ", peer.epoch,
                                      ", stream ", peer.stream, "): ", why));
  };
  if (peer.purpose != member::Purpose::Data) return refuse("it is not for data");
  if (peer.epoch != options.epoch) return refuse(cat("this is epoch ", options.epoch));
  if (peer.rank < 0 || peer.rank >= options.rank) {
    return refuse(cat("rank ", options.rank, " accepts from lower ranks"));
  }
  if (peer.stream >= kMaxStreams) return refuse(cat("streams are numbered below ", kMaxStreams));
  const auto found = links.find({peer.rank, static_cast<int>(peer.stream)});
  if (found != links.end() && found->second.has_connection()) return refuse("it has one already");
  return {};
}

Status TcpLinkTable::adopt(member::Greeted connection) {
  RONDE_TRY(state_->check(connection.peer));
  return state_->open(connection.peer.rank, static_cast<int>(connection.peer.stream)).attach(std::move(connection.fd));
}

void TcpLinkTable::close_all(const Status& reason) {
  state_->closed = reason;
  for (auto& [key, link] : state_->links) link.close(reason);
}

uint64_t TcpLinkTable::bytes_sent() const {
  uint64_t out = 0;
  for (const auto& [key, link] : state_->links) out += link.bytes_sent();
  return out;
}

Time TcpLinkTable::next_deadline() const {
  Time out = kNever;
  for (const auto& [key, link] : state_->links) out = std::min(out, link.next_deadline());
  return out;
}

}  // namespace ronde::transport
