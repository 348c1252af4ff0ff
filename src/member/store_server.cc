// SPDX-License-Identifier: Apache-2.0
// The store's thread: sockets around the Rendezvous, which decides everything.
#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "member/greeter.h"
#include "member/rendezvous.h"
#include "member/store.h"
#include "os/doorbell.h"
#include "os/event_set.h"
#include "os/thread.h"

namespace ronde::member {
namespace {

using ConnId = Rendezvous::ConnId;

struct Connection final : os::EventSet::Source {
  explicit Connection(os::Fd fd) : stream(std::move(fd), store_wire::kMaxFrameBytes) {}
  void on_ready(bool, bool) override { ready = true; }

  FrameStream stream;
  bool ready = true;  // what came before it was watched
};

// All that the thread owns. Thread: ronde-store.
class Service {
 public:
  Service(const StoreServer::Options& options, StoreServer::Callbacks callbacks, os::EventSet events,
          os::Listener listener)
      : callbacks_(std::move(callbacks)),
        max_connections_(4 * static_cast<size_t>(options.size) + 64),
        // Two answers with the blobs of all ranks: more is never queued for a rank that reads.
        max_queued_bytes_(2 * (static_cast<size_t>(options.size) + 2) * (store_wire::kMaxFrameBytes + 4)),
        events_(std::move(events)),
        greeter_(std::move(listener), options.key, -1, &events_),
        rendezvous_(options.size, options.report_lost_connections) {}
  ~Service() {
    for (auto& [id, connection] : connections_) events_.remove(connection->stream.fd().get());
  }

  const os::Address& address() const { return greeter_.address(); }
  int fd() const { return events_.fd(); }
  Time next_deadline() const { return std::min(greeter_.next_deadline(), rendezvous_.next_deadline()); }
  void publish(const Cause& cause) { rendezvous_.publish(cause); }

  void step() {
    events_.collect();
    serve();  // ends are seen before those who come in their place
    for (auto& greeted : greeter_.take(clock_.now())) admit(std::move(greeted));
    serve();
    rendezvous_.tick(clock_.now());
    deliver();
    for (auto& notice : rendezvous_.take_notices()) {
      std::visit([this](auto& one) { tell(one); }, notice);
    }
  }

 private:
  void admit(Greeted greeted);
  void serve();
  Status read(ConnId id, Connection& connection);
  void close(ConnId id);
  void deliver();
  void flush(Connection& connection);
  void tell(Rendezvous::RankFailed& failed) {
    if (callbacks_.on_failure) callbacks_.on_failure(failed.rank, failed.what);
  }
  void tell(const Rendezvous::RankLeft& left) {
    if (callbacks_.on_leave) callbacks_.on_leave(left.rank, left.order);
  }
  void tell(const Rendezvous::EpochOpened&) {
    if (callbacks_.on_open) callbacks_.on_open();
  }

  StoreServer::Callbacks callbacks_;
  size_t max_connections_;
  size_t max_queued_bytes_;
  SteadyClock clock_;
  os::EventSet events_;
  Greeter greeter_;
  Rendezvous rendezvous_;
  std::map<ConnId, std::unique_ptr<Connection>>
      connections_;  // older first: an end is seen before its successor's arrival
  ConnId next_id_ = 1;
};

void Service::admit(Greeted greeted) {
  const std::string address = os::peer_address(greeted.fd).to_string();
  if (greeted.peer.purpose != Purpose::Store || connections_.size() >= max_connections_) {
    log_warning(cat("the store closed a connection from rank ", greeted.peer.rank, " (", address, "): ",
                    connections_.size() >= max_connections_ ? "too many are open" : "it was not meant for the store"));
    return;
  }
  const ConnId id = next_id_++;
  auto connection = std::make_unique<Connection>(std::move(greeted.fd));
  if (const Status status = events_.add(connection->stream.fd().get(), connection.get()); !status.ok()) {
    log_warning(cat("the store closed a connection: ", status.message()));
    return;
  }
  connections_[id] = std::move(connection);
  rendezvous_.connected(id, greeted.peer.rank, address);
}

void Service::serve() {
  std::vector<ConnId> ended;
  for (auto& [id, connection] : connections_) {
    if (!std::exchange(connection->ready, false)) continue;
    flush(*connection);
    const Status status = read(id, *connection);
    if (status.ok()) continue;
    if (status.code() != Code::PeerLost) log_warning(cat("the store closed a connection: ", status.message()));
    // At once, so that a successor's arrival later in this loop finds it gone.
    rendezvous_.disconnected(id);
    ended.push_back(id);
  }
  for (const ConnId id : ended) close(id);
}

Status Service::read(ConnId id, Connection& connection) {
  for (;;) {
    RONDE_ASSIGN(const auto frame, connection.stream.next());
    if (!frame.has_value()) return {};
    RONDE_TRY(rendezvous_.on_frame(id, *frame, clock_.now()));
  }
}

void Service::close(ConnId id) {
  const auto found = connections_.find(id);
  events_.remove(found->second->stream.fd().get());
  connections_.erase(found);
}

void Service::deliver() {
  for (const auto& [to, frame] : rendezvous_.take_outgoing()) {
    const auto found = connections_.find(to);
    if (found != connections_.end()) found->second->stream.queue(frame);
  }
  std::vector<ConnId> stuck;
  for (auto& [id, connection] : connections_) {
    flush(*connection);
    if (connection->stream.queued_bytes() > max_queued_bytes_) stuck.push_back(id);
  }
  for (const ConnId id : stuck) {
    log_warning("the store closed a connection that asks without reading the answers");
    rendezvous_.disconnected(id);
    close(id);
  }
  if (!stuck.empty()) deliver();
}

// A write that fails is followed by the end of the reads, which serve() sees.
void Service::flush(Connection& connection) {
  if (connection.stream.queued_bytes() > 0) (void)connection.stream.flush();
}

}  // namespace

struct StoreServer::State {
  explicit State(os::Doorbell rung) : bell(std::move(rung)) {}

  void run();
  bool take_orders();

  os::Doorbell bell;
  std::unique_ptr<Service> service;
  os::Address address;
  std::mutex mutex;  // guards causes and stop
  std::vector<Cause> causes;
  bool stop = false;
  std::thread thread;
};

// False: the thread is to end.
bool StoreServer::State::take_orders() {
  bell.drain();
  const std::lock_guard lock(mutex);
  for (const auto& cause : std::exchange(causes, {})) service->publish(cause);
  return !stop;
}

void StoreServer::State::run() {
  os::name_this_thread("ronde-store");
  const int fds[] = {service->fd(), bell.fd()};
  for (bool go_on = true; go_on;) {
    os::sleep_until_readable(fds, service->next_deadline());
    go_on = take_orders();
    service->step();
  }
}

StoreServer::StoreServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<StoreServer>> StoreServer::start(const Options& options, Callbacks callbacks) {
  if (options.size < 1) return Status(Code::InvalidArgument, cat("a job has at least 1 rank, not ", options.size));
  auto listener = os::listen_tcp(options.listen);
  if (!listener.ok()) return listener.status().with_context("the store");
  RONDE_ASSIGN(auto events, os::EventSet::create());
  RONDE_ASSIGN(auto bell, os::Doorbell::create());
  auto state = std::make_unique<State>(std::move(bell));
  state->service =
      std::make_unique<Service>(options, std::move(callbacks), std::move(events), std::move(listener).value());
  state->address = state->service->address();
  state->thread = std::thread([raw = state.get()] { raw->run(); });
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(state)));
}

StoreServer::~StoreServer() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->bell.ring();
  state_->thread.join();
}

const os::Address& StoreServer::address() const {
  return state_->address;
}

void StoreServer::publish(const Cause& cause) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->causes.push_back(cause);
  }
  state_->bell.ring();
}

}  // namespace ronde::member
