// SPDX-License-Identifier: Apache-2.0
// TcpConnector: one data connection to a peer in the making. Tries the addresses where the peer listens in turn, each
// with its hello and its share of the time, without blocking. A peer that closes in the middle of a hello is tried
// again, in kRounds rounds at most: it took this process for a stranger, because it was stopped meanwhile. Thread: the
// one that drives the engine.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "member/greeter.h"
#include "os/event_set.h"

namespace ronde::transport {

class TcpConnector {
 public:
  struct Options {
    std::span<const os::Address> addresses;  // outlive it
    member::Key key{};
    member::Identity self;
    int32_t peer = 0;
    os::EventSet* events = nullptr;          // outlives it
    os::EventSet::Source* source = nullptr;  // told of the descriptor that is being connected
    Time deadline = kNever;
    Duration patience{};  // a further round gets this long
  };
  explicit TcpConnector(const Options& options) : options_(options) {}
  ~TcpConnector() { abandon(); }
  TcpConnector(const TcpConnector&) = delete;
  TcpConnector& operator=(const TcpConnector&) = delete;

  // The proven connection, which stays watched by `source`; nothing while it is being made. The error lists each
  // address.
  Result<std::optional<os::Fd>> advance(Time now);
  // When to look again, if no event comes before.
  Time next_deadline() const { return attempt_ ? attempt_deadline_ : kNever; }

 private:
  static constexpr int kRounds = 3;

  bool begin_round(Time now);
  Status start(const os::Address& address, Time now);
  Result<std::optional<os::Fd>> try_current(Time now);
  void abandon();

  Options options_;
  size_t next_ = 0;  // address
  int round_ = 1;
  bool was_closed_ = false;  // by the peer, in this round
  std::optional<member::Greeting> attempt_;
  Time attempt_deadline_ = kNever;
  std::string tried_;
  Code code_ = Code::PeerLost;
};

}  // namespace ronde::transport
