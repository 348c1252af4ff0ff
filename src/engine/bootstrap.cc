// SPDX-License-Identifier: Apache-2.0
#include "engine/bootstrap.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "engine/backends.h"
#include "engine/connect.h"

namespace ronde::engine {
namespace {

Result<std::vector<os::Address>> store_addresses(const JobIdentity& identity) {
  RONDE_ASSIGN(const os::Address name, os::parse_host_port(identity.store));
  Result<std::vector<os::Address>> resolved = os::resolve(name);
  if (!resolved.ok()) return resolved.status().with_context(cat("RONDE_STORE=", identity.store));
  return resolved;
}

// Started by hand: this process may have to be the store and the broker of the others.
Status start_services(const BootstrapOptions& options, const member::Key& key, std::span<const os::Address> store_at) {
  const JobIdentity& identity = options.identity;
  if (identity.launched || options.services == nullptr) return {};
  ProcessServices& services = *options.services;
  if (identity.rank == 0 && !services.store) {
    Result<std::unique_ptr<member::StoreServer>> started = member::StoreServer::start(
        {.listen = store_at.front(), .key = key, .size = identity.size, .report_lost_connections = true});
    if (!started.ok()) return started.status().with_context(cat("RONDE_STORE=", identity.store));
    services.store = std::move(started).value();
  }
  if (identity.local_rank == 0 && identity.local_size > 1 && !services.broker) {
    services.broker_name = member::random_broker_name();
    RONDE_ASSIGN(services.broker, member::BrokerServer::start(services.broker_name, key));
  }
  return {};
}

// What lays out memory and frames has to be equal on all ranks.
std::string agreed_settings(const Settings& settings) {
  constexpr std::string_view kAgreed[] = {"transport", "slots", "slot_bytes", "segment_bytes"};
  const std::vector<SettingText> rows = describe_settings();
  const std::vector<std::string> values = setting_values(settings);
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::ranges::find(kAgreed, rows[i].name) == std::end(kAgreed)) continue;
    out += cat(out.empty() ? "" : " ", rows[i].environment, "=", values[i]);
  }
  return out;
}

Arrival arrival_of(const BootstrapOptions& options) {
  return {.host_id = options.host_id,
          .host_name = options.host_name,
          .pid = static_cast<int32_t>(getpid()),
          .local_rank = options.identity.local_rank,
          .local_size = options.identity.local_size,
          .broker = options.identity.launched || options.services == nullptr ? options.identity.broker
                                                                             : options.services->broker_name,
          .agreed_settings = agreed_settings(options.settings)};
}

Result<Topology> open_epoch(const BootstrapOptions& options, member::StoreClient& store, Time deadline) {
  RONDE_ASSIGN(const member::StoreClient::Opened opened,
               store.open_epoch(options.identity.size, encode(arrival_of(options)), deadline));
  std::vector<Arrival> arrivals;
  for (const Bytes& blob : opened.blobs) {
    RONDE_ASSIGN(Arrival arrival, decode_arrival(blob));
    arrivals.push_back(std::move(arrival));
  }
  return make_topology(options.identity.rank, opened.epoch, arrivals);
}

// The first reason why some rank of the host could not get the memory; empty if all could.
Result<std::string> why_no_memory(member::StoreClient& store, const Status& own, Time deadline) {
  Writer mine;
  mine.put_string(std::string_view(own.message()).substr(0, 1024));
  RONDE_ASSIGN(const std::vector<Bytes> all, store.exchange("memory", mine.bytes(), deadline));
  for (size_t r = 0; r < all.size(); ++r) {
    Reader in(all[r]);
    const std::string reason = in.get_string(1024);
    RONDE_TRY(in.finish("memory report"));
    if (!reason.empty()) return cat("rank ", r, ": ", reason);
  }
  return std::string();
}

// Shared memory where all ranks are on one host; says in transport_reason why not, if it does not work.
Status try_shared_memory(const BootstrapOptions& options, const member::Key& key, Parts& parts, Time deadline) {
  const Topology& topology = parts.topology;
  if (options.settings.transport == TransportChoice::Tcp) {
    parts.transport_reason = "RONDE_TRANSPORT=tcp";
    return {};
  }
  if (!topology.one_host()) {
    parts.transport_reason = "the ranks are on several hosts";
    return {};
  }
  const transport::ArenaLayout layout{.ranks = topology.local_size,
                                      .slots = options.settings.slots,
                                      .slot_bytes = static_cast<size_t>(options.settings.slot_bytes)};
  const member::HostMemoryRequest request{.epoch = topology.epoch,
                                          .local_rank = topology.local_rank,
                                          .local_size = topology.local_size,
                                          .board_bytes = control::Board::bytes(topology.local_size),
                                          .arena_bytes = layout.bytes()};
  const std::string& broker = topology.peers[static_cast<size_t>(topology.local_ranks[0])].arrival.broker;
  Result<std::shared_ptr<member::HostMemory>> memory = options.memory(broker, key, request, deadline);
  RONDE_ASSIGN(parts.transport_reason, why_no_memory(*parts.store, memory.status(), deadline));
  if (parts.transport_reason.empty()) {
    parts.transport = "shm";
    parts.memory = std::move(memory).value();
    parts.arena = std::make_unique<transport::Arena>(parts.memory->arena.data(), layout);
    return {};
  }
  if (options.settings.transport == TransportChoice::Shm) {
    return Status(Code::Unsupported,
                  cat("RONDE_TRANSPORT=shm, but shared memory does not work here: ", parts.transport_reason));
  }
  if (topology.rank == 0) {
    log_warning(cat("no shared memory between the ranks of this host, data goes over TCP: ", parts.transport_reason));
  }
  return {};
}

// Nothing shared: a board and bells of the rank's own.
Status make_private_memory(Parts& parts) {
  auto memory = std::make_shared<member::HostMemory>();
  RONDE_ASSIGN(memory->board, os::Region::create_heap(control::Board::bytes(1)));
  RONDE_ASSIGN(os::Doorbell loop, os::Doorbell::create());
  RONDE_ASSIGN(os::Doorbell waiter, os::Doorbell::create());
  memory->bells.push_back({std::move(loop), std::move(waiter)});
  parts.memory = std::move(memory);
  return {};
}

void make_board(Parts& parts, int local_size, int local_rank) {
  parts.board =
      std::make_unique<control::Board>(parts.memory->board.data(), local_size, local_rank, &parts.memory->bells);
}

// Control within a host: the rings on the board. The coordinator is rank 0.
void connect_on_board(Parts& parts) {
  const Topology& topology = parts.topology;
  const auto local_of = [&](Rank rank) {
    return static_cast<int>(std::ranges::find(topology.local_ranks, rank) - topology.local_ranks.begin());
  };
  if (topology.rank != 0) {
    parts.coordinator = parts.board->rank_side(local_of(0));
    return;
  }
  for (Rank r = 0; r < topology.size; ++r) {
    parts.ranks.push_back(r == 0 ? nullptr : parts.board->coordinator_side(local_of(r)));
  }
}

Result<Parts> bootstrap_alone(const BootstrapOptions& options) {
  Parts parts;
  parts.settings = options.settings;
  parts.time = options.time;
  RONDE_ASSIGN(parts.topology, make_topology(0, 1, std::vector{arrival_of(options)}));
  parts.transport = "self";
  parts.transport_reason = "a job of one rank";
  RONDE_ASSIGN(os::EventSet events, os::EventSet::create());
  parts.events = std::make_unique<os::EventSet>(std::move(events));
  RONDE_TRY(make_private_memory(parts));
  make_board(parts, 1, 0);
  parts.ranks.push_back(nullptr);
  add_backends(parts);
  return parts;
}

}  // namespace

MemorySource memory_from_broker() {
  return [](const std::string& broker, const member::Key& key, const member::HostMemoryRequest& request,
            Time deadline) -> Result<std::shared_ptr<member::HostMemory>> {
    if (broker.empty()) return Status(Code::Unsupported, "nobody on this host hands out shared memory");
    RONDE_ASSIGN(member::HostMemory memory, member::fetch_host_memory(broker, key, request, deadline));
    return std::make_shared<member::HostMemory>(std::move(memory));
  };
}

Result<Parts> bootstrap(const BootstrapOptions& options) {
  const JobIdentity& identity = options.identity;
  if (identity.store.empty()) return bootstrap_alone(options);

  const Time deadline = std::chrono::steady_clock::now() + options.settings.init_timeout;
  RONDE_ASSIGN(const member::Key key, member::read_key_file(identity.key_file));
  RONDE_ASSIGN(const std::vector<os::Address> store_at, store_addresses(identity));
  RONDE_TRY(start_services(options, key, store_at));

  Parts parts;
  parts.settings = options.settings;
  parts.time = options.time;
  const std::string who = cat("host ", options.host_name, ", pid ", getpid());
  Result<std::unique_ptr<member::StoreClient>> store =
      member::StoreClient::connect(store_at, key, identity.rank, deadline, who);
  if (!store.ok()) return store.status().with_context(cat("rank ", identity.rank, ", RONDE_STORE=", identity.store));
  parts.store = std::move(store).value();
  RONDE_ASSIGN(parts.topology, open_epoch(options, *parts.store, deadline));
  parts.store_owner = identity.launched ? "the launcher" : parts.topology.peers[0].name;
  RONDE_ASSIGN(os::EventSet events, os::EventSet::create());
  parts.events = std::make_unique<os::EventSet>(std::move(events));
  if (identity.size > 1) RONDE_TRY(try_shared_memory(options, key, parts, deadline));
  if (parts.memory) {
    make_board(parts, parts.topology.local_size, parts.topology.local_rank);
    connect_on_board(parts);
  } else {
    RONDE_TRY(make_private_memory(parts));
    make_board(parts, 1, 0);
    if (identity.size > 1) {
      parts.transport = "tcp";
      RONDE_TRY(connect_over_tcp(parts, key, deadline));
    } else {
      parts.transport = "self";
      parts.transport_reason = "a job of one rank";
      parts.ranks.push_back(nullptr);
    }
  }
  add_backends(parts);
  return parts;
}

}  // namespace ronde::engine
