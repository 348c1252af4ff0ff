// SPDX-License-Identifier: Apache-2.0
// Greeter: hellos over sockets. Accepts on the rank's one listening socket and hands out connections whose peer has
// proven the job key; strangers are closed (one rate-limited warning), a slow one after kHelloTimeout, and no more than
// kMaxPending at a time: the oldest makes room for the newest, so that strangers who say nothing do not keep the job's
// own out. Thread: the one that drives the engine.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "member/hello.h"
#include "os/event_set.h"
#include "os/socket.h"

namespace ronde::member {

constexpr Duration kHelloTimeout = std::chrono::seconds(2);
constexpr size_t kMaxPending = 256;

struct Greeted {
  os::Fd fd;
  Identity peer;
  Key session{};
};

// One connection's hello, without blocking. The deadline is for the peer's proof. An initiator that has given its own
// proof waits for its welcome without a deadline: the acceptor, which may be stopped, takes the connection when it sees
// the proof, and must then find somebody at the other end.
class Greeting {
 public:
  Greeting(os::Fd fd, Hello hello, Time deadline);
  // True when done; then take() gives the connection. Also connects first, if the socket is still connecting. An error
  // is final.
  Result<bool> advance(Time now);
  Greeted take();
  int fd() const { return fd_.get(); }
  Time deadline() const { return hello_.proven() ? kNever : deadline_; }
  // The connection stands: what is missing is an answer.
  bool connected() const { return written_ > 0; }

 private:
  Result<bool> write_out();
  Result<bool> read_in();

  os::Fd fd_;
  Hello hello_;
  Time deadline_;
  bool started_ = false;
  Bytes out_;
  size_t written_ = 0;
  Bytes in_;
  size_t read_ = 0;
};

// The same, waiting: for code that runs before the engine does. `fd` is connected.
Result<Greeted> greet_by(os::Fd fd, Hello::Role role, const Key& key, const Identity& self, Time deadline);

// Connects and says hello. A peer that closes in the middle of it has taken the caller for a stranger, because one of
// the two was stopped meanwhile: it is called kCalls times in all.
constexpr int kCalls = 3;
Result<Greeted> call_by(const std::function<Result<os::Fd>()>& connect, const Key& key, const Identity& self,
                        Time deadline);

class Greeter {
 public:
  // `events` outlives it. Identities given to acceptors: {purpose of the peer, own rank, epoch of the peer's hello}.
  Greeter(os::Listener listener, const Key& key, int32_t own_rank, os::EventSet* events);
  ~Greeter();
  const os::Address& address() const;
  // Connections proven since the last call.
  std::vector<Greeted> take(Time now);
  // The nearest time at which a pending hello expires; kNever if none is pending.
  Time next_deadline() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ronde::member
