// SPDX-License-Identifier: Apache-2.0
// The broker's thread: sockets around the HostMemoryDesk.
#include <sodium.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <thread>

#include "base/log.h"
#include "member/broker_wire.h"
#include "member/greeter.h"
#include "member/host_memory_desk.h"
#include "os/thread.h"

namespace ronde::member {
namespace {

// For what a proven rank has to do at once: say what it wants, and take it.
constexpr Duration kRankPatience = std::chrono::seconds(2);

struct Customer final : os::EventSet::Source {
  Customer(os::Fd fd, Time until) : stream(std::move(fd), broker_wire::kMaxFrameBytes), deadline(until) {}
  void on_ready(bool, bool) override { ready = true; }

  FrameStream stream;
  Time deadline;
  bool ready = true;  // what came before it was watched
};

// All that the thread owns. Thread: ronde-broker.
class Counter {
 public:
  Counter(os::Fd listener, const Key& key, BrokerServer::Create create, os::EventSet events)
      : events_(std::move(events)),
        greeter_(os::Listener{std::move(listener), {}}, key, -1, &events_),
        desk_(std::move(create)) {}
  ~Counter() {
    for (auto& customer : customers_) events_.remove(customer.stream.fd().get());
  }

  int fd() const { return events_.fd(); }
  Time next_deadline() const {
    Time next = greeter_.next_deadline();
    for (const auto& customer : customers_) next = std::min(next, customer.deadline);
    return next;
  }

  void step() {
    events_.collect();
    const Time now = clock_.now();
    for (auto& greeted : greeter_.take(now)) admit(std::move(greeted), now);
    for (auto it = customers_.begin(); it != customers_.end();) {
      const bool done = now >= it->deadline || (std::exchange(it->ready, false) && serve(*it));
      if (done) events_.remove(it->stream.fd().get());
      it = done ? customers_.erase(it) : std::next(it);
    }
  }

 private:
  void admit(Greeted greeted, Time now) {
    if (greeted.peer.purpose != Purpose::Broker || customers_.size() >= kMaxPending) return;
    customers_.emplace_back(std::move(greeted.fd), now + kRankPatience);
    auto& customer = customers_.back();
    if (!events_.add(customer.stream.fd().get(), &customer).ok()) customers_.pop_back();
  }

  // True: the connection has done its work, or cannot.
  bool serve(Customer& customer) {
    const auto frame = customer.stream.next();
    if (frame.ok() && !frame->has_value()) return false;
    const Status status = frame.ok() ? answer(customer.stream, **frame) : frame.status();
    if (!status.ok()) log_warning(cat("the broker of shared memory could not serve a rank: ", status.message()));
    return true;
  }

  Status answer(FrameStream& stream, ByteSpan frame) {
    const Time deadline = clock_.now() + kRankPatience;
    const auto request = broker_wire::decode_request(frame);
    const auto fds = request.ok() ? desk_.ask(*request) : Result<std::vector<int>>(request.status());
    RONDE_TRY(os::write_all_by(stream.fd(), *broker_wire::encode_answer(fds.status()), deadline));
    return fds.ok() ? os::send_fds_by(stream.fd(), *fds, deadline) : Status();
  }

  SteadyClock clock_;
  os::EventSet events_;
  Greeter greeter_;
  HostMemoryDesk desk_;
  std::list<Customer> customers_;
};

}  // namespace

struct BrokerServer::State {
  State(Counter* served, os::Doorbell rung) : counter(served), bell(std::move(rung)) {}

  std::unique_ptr<Counter> counter;
  os::Doorbell bell;
  std::atomic<bool> stop = false;
  std::thread thread;

  void run() {
    os::name_this_thread("ronde-broker");
    const int fds[] = {counter->fd(), bell.fd()};
    while (!stop) {
      os::sleep_until_readable(fds, counter->next_deadline());
      counter->step();
    }
  }
};

BrokerServer::BrokerServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<BrokerServer>> BrokerServer::start(const std::string& name, const Key& key, Create create) {
  auto listener = os::listen_unix(name);
  if (!listener.ok()) return listener.status().with_context("the broker of shared memory");
  RONDE_ASSIGN(auto events, os::EventSet::create());
  RONDE_ASSIGN(auto bell, os::Doorbell::create());
  auto* counter = new Counter(std::move(listener).value(), key, std::move(create), std::move(events));
  auto state = std::make_unique<State>(counter, std::move(bell));
  state->thread = std::thread([raw = state.get()] { raw->run(); });
  return std::unique_ptr<BrokerServer>(new BrokerServer(std::move(state)));
}

BrokerServer::~BrokerServer() {
  state_->stop = true;
  state_->bell.ring();
  state_->thread.join();
}

std::string random_broker_name() {
  RONDE_CHECK(sodium_init() >= 0, "libsodium finds no source of random bytes");
  std::array<unsigned char, 16> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  std::array<char, bytes.size() * 2 + 1> hex{};
  sodium_bin2hex(hex.data(), hex.size(), bytes.data(), bytes.size());
  return cat("ronde-", hex.data());
}

}  // namespace ronde::member
