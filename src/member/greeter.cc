// SPDX-License-Identifier: Apache-2.0
#include "member/greeter.h"

#include <algorithm>
#include <list>

#include "base/log.h"

namespace ronde::member {
namespace {

constexpr Duration kWarnEvery = std::chrono::seconds(10);
constexpr Duration kAcceptAgain = std::chrono::milliseconds(100);

class ReadySource final : public os::EventSet::Source {
 public:
  void on_ready(bool, bool) override { ready_ = true; }
  bool take() { return std::exchange(ready_, false); }

 private:
  bool ready_ = true;  // what came before it was watched
};

struct Pending {
  Greeting greeting;
  std::string peer;
  ReadySource source;
};

// One line for many strangers.
class StrangerWarning {
 public:
  void tell(std::string_view peer, const Status& why, Time now) {
    ++unsaid_;
    if (now < next_) return;
    next_ = now + kWarnEvery;
    const std::string others = unsaid_ > 1 ? cat(" (and ", unsaid_ - 1, " more since the last warning)") : "";
    log_warning(cat("refused a connection", peer.empty() ? "" : " from ", peer, ": ", why.message(), others));
    unsaid_ = 0;
  }

 private:
  Time next_ = Time::min();
  uint64_t unsaid_ = 0;
};

}  // namespace

struct Greeter::State {
  os::Listener listener;
  Key key;
  int32_t rank;
  os::EventSet* events;
  ReadySource listener_ready;
  Time accept_again = kNever;
  std::list<Pending> pending;  // oldest first
  StrangerWarning warning;

  void accept(Time now);
  void admit(os::Fd fd, Time now);
  // True if the connection is through with its hello; `out` has it if it is proven.
  bool advance(Pending& one, Time now, std::vector<Greeted>& out);
  void drop_oldest(Time now);
};

Greeter::Greeter(os::Listener listener, const Key& key, int32_t own_rank, os::EventSet* events)
    : state_(new State{std::move(listener), key, own_rank, events, {}, kNever, {}, {}}) {
  const Status status = events->add(state_->listener.fd.get(), &state_->listener_ready);
  RONDE_CHECK(status.ok(), status.message().c_str());
}

Greeter::~Greeter() {
  for (auto& one : state_->pending) state_->events->remove(one.greeting.fd());
  state_->events->remove(state_->listener.fd.get());
}

const os::Address& Greeter::address() const {
  return state_->listener.bound;
}

void Greeter::State::accept(Time now) {
  accept_again = kNever;
  for (;;) {
    auto fd = os::accept_now(listener.fd);
    if (!fd.ok()) {  // out of descriptors: the connection waits in the queue, and no event will tell of it again
      warning.tell("", fd.status(), now);
      accept_again = now + kAcceptAgain;
      return;
    }
    if (!fd->valid()) return;
    admit(std::move(fd).value(), now);
  }
}

void Greeter::State::admit(os::Fd fd, Time now) {
  if (pending.size() >= kMaxPending) drop_oldest(now);
  const auto address = os::peer_address(fd);
  Hello hello(Hello::Role::Acceptor, key, Identity{.rank = rank});
  pending.push_back({Greeting(std::move(fd), std::move(hello), now + kHelloTimeout),
                     address.port == 0 ? "" : address.to_string(),
                     {}});
  auto& one = pending.back();
  const Status status = events->add(one.greeting.fd(), &one.source);
  if (status.ok()) return;
  warning.tell(one.peer, status, now);
  pending.pop_back();
}

void Greeter::State::drop_oldest(Time now) {
  auto& one = pending.front();
  warning.tell(one.peer, Status(Code::ResourceExhausted, "too many connections at once said no hello"), now);
  events->remove(one.greeting.fd());
  pending.pop_front();
}

bool Greeter::State::advance(Pending& one, Time now, std::vector<Greeted>& out) {
  if (!one.source.take() && now < one.greeting.deadline()) return false;
  const auto done = one.greeting.advance(now);
  if (done.ok() && !*done) return false;
  events->remove(one.greeting.fd());
  if (done.ok()) {
    out.push_back(one.greeting.take());
  } else {
    warning.tell(one.peer, done.status(), now);
  }
  return true;
}

std::vector<Greeted> Greeter::take(Time now) {
  State& s = *state_;
  std::vector<Greeted> out;
  if (s.listener_ready.take() || now >= s.accept_again) s.accept(now);
  for (auto it = s.pending.begin(); it != s.pending.end();) {
    it = s.advance(*it, now, out) ? s.pending.erase(it) : std::next(it);
  }
  return out;
}

Time Greeter::next_deadline() const {
  Time next = state_->accept_again;
  for (const auto& one : state_->pending) next = std::min(next, one.greeting.deadline());
  return next;
}

}  // namespace ronde::member
