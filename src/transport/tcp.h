// SPDX-License-Identifier: Apache-2.0
// TCP links. A frame on the wire: u32 epoch, u32 step, u64 batch, u64 length, then the payload. Links are opened at
// first use: the lower rank connects, the higher accepts; both queue what is posted meanwhile. Data links have no
// time-out of their own: a stopped peer is not a dead one; the engine closes them when the control side knows.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "member/greeter.h"
#include "os/event_set.h"
#include "transport/link.h"

namespace ronde::transport {

// Streams to one peer are numbered from 0; a peer that asks for more is refused.
constexpr int kMaxStreams = 64;

class TcpLinkTable final : public LinkTable {
 public:
  struct Options {
    int32_t rank = 0;
    uint32_t epoch = 0;
    member::Key key{};
    std::vector<std::vector<os::Address>> addresses;  // by rank: where it listens
    std::vector<std::string> peer_names;              // by rank, "rank 3 (host b, pid 17)", for messages
    os::EventSet* events = nullptr;                   // outlives it
    const Clock* clock = nullptr;
    Duration connect_timeout = std::chrono::seconds(30);
  };
  explicit TcpLinkTable(Options options);
  ~TcpLinkTable() override;

  Link& link(int32_t peer, int stream) override;
  // A data connection that the Greeter proved. An error: nobody expects it (wrong epoch or rank, a second one).
  Status adopt(member::Greeted connection);
  // Closes every link, present and future.
  void close_all(const Status& reason);
  uint64_t bytes_sent() const;
  // When an attempt to connect must be looked at, if no event comes before; kNever if there is none.
  Time next_deadline() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ronde::transport
