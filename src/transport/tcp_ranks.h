// SPDX-License-Identifier: Apache-2.0
// For tests: ranks of one process that listen on the loopback, each with its own events, Greeter and TcpLinkTable.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <vector>

#include "transport/link_pair.h"
#include "transport/tcp.h"

namespace ronde::transport {

constexpr uint32_t kTestEpoch = 7;

struct TcpRank {
  os::EventSet events = os::EventSet::create().value();
  std::unique_ptr<member::Greeter> greeter;
  std::unique_ptr<TcpLinkTable> table;
  Status adopted;  // the first refusal
};

class TcpRanks {
 public:
  // buffer_bytes: of the accepting ends' sockets; 0: the system's.
  explicit TcpRanks(int32_t size, int buffer_bytes = 0) : key_(member::random_key()) {
    std::vector<std::vector<os::Address>> addresses;
    for (int32_t rank = 0; rank < size; ++rank) addresses.push_back({listen(rank, buffer_bytes)});
    for (int32_t rank = 0; rank < size; ++rank) {
      auto options = options_of(rank);
      options.addresses = addresses;
      ranks_[static_cast<size_t>(rank)]->table = std::make_unique<TcpLinkTable>(std::move(options));
    }
  }

  TcpRank& at(int32_t rank) { return *ranks_[static_cast<size_t>(rank)]; }
  const member::Key& key() const { return key_; }
  os::Address address(int32_t rank) { return at(rank).greeter->address(); }

  // All but the addresses.
  TcpLinkTable::Options options_of(int32_t rank) {
    TcpLinkTable::Options options;
    options.rank = rank;
    options.epoch = kTestEpoch;
    options.key = key_;
    for (size_t i = 0; i < ranks_.size(); ++i)
      options.peer_names.push_back(cat("rank ", i, " (host h, pid ", 100 + i, ")"));
    options.events = &at(rank).events;
    options.clock = &clock_;
    return options;
  }

  void pump(int32_t rank) {
    TcpRank& self = at(rank);
    if (!self.greeter) return;
    self.events.collect();
    for (auto& connection : self.greeter->take(clock_.now())) {
      const Status status = self.table->adopt(std::move(connection));
      if (self.adopted.ok()) self.adopted = status;
    }
  }

  void vanish(int32_t rank) {
    at(rank).table.reset();
    at(rank).greeter.reset();
  }

 private:
  os::Address listen(int32_t rank, int buffer_bytes) {
    auto listener = os::listen_tcp({"127.0.0.1", 0}).value();
    if (buffer_bytes != 0) {  // inherited by what it accepts
      for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
        ::setsockopt(listener.fd.get(), SOL_SOCKET, option, &buffer_bytes, sizeof buffer_bytes);
      }
    }
    ranks_.push_back(std::make_unique<TcpRank>());
    ranks_.back()->greeter = std::make_unique<member::Greeter>(std::move(listener), key_, rank, &ranks_.back()->events);
    return ranks_.back()->greeter->address();
  }

  SteadyClock clock_;
  member::Key key_;
  std::vector<std::unique_ptr<TcpRank>> ranks_;
};

}  // namespace ronde::transport
