// SPDX-License-Identifier: Apache-2.0
// TcpConnector: one data connection to a peer in the making. Tries the addresses where the peer listens in turn, each
// with its hello and its share of the time, without blocking. Thread: the one that drives the engine.
//
// A peer may be stopped, and a stopped peer is not a lost one. If it closes in the middle of a hello, it has taken this
// process for a stranger because it was stopped meanwhile: it is tried again, in member::kCalls rounds at most. If the
// connection stands and nobody answers, it is tried again until the owner gives up: the control side knows who is lost.
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
    os::EventSet* events = nullptr;          // outlives it
    os::EventSet::Source* source = nullptr;  // told of the descriptor that is being connected
    Duration patience{};                     // a round gets this long
  };
  TcpConnector(const Options& options, Time now) : options_(options) { begin_round(now); }
  ~TcpConnector() { abandon(); }
  TcpConnector(const TcpConnector&) = delete;
  TcpConnector& operator=(const TcpConnector&) = delete;

  // The proven connection, which stays watched by `source`; nothing while it is being made. The error lists each
  // address.
  Result<std::optional<os::Fd>> advance(Time now);
  // When to look again, if no event comes before.
  Time next_deadline() const { return attempt_ ? attempt_->deadline() : kNever; }

 private:
  void begin_round(Time now);
  void note(const Status& why);
  Status start(const os::Address& address, Time now);
  Result<std::optional<os::Fd>> try_current(Time now);
  void abandon();

  Options options_;
  size_t next_ = 0;  // address
  int rounds_left_ = member::kCalls;
  bool closed_ = false;  // by a peer, in this round
  bool silent_ = false;  // a peer, in this round
  Time round_ends_ = kNever;
  std::optional<member::Greeting> attempt_;
  std::string tried_;  // in this round
  Code code_ = Code::PeerLost;
};

}  // namespace ronde::transport
