// SPDX-License-Identifier: Apache-2.0
// Parts: everything an engine is composed of for one epoch. Made by bootstrap.cc; the engine itself names no concrete
// backend, transport or carrier.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/settings.h"
#include "control/board.h"
#include "control/carrier.h"
#include "engine/topology.h"
#include "member/broker.h"
#include "member/greeter.h"
#include "member/store.h"
#include "os/event_set.h"
#include "transport/arena.h"
#include "transport/tcp.h"

namespace ronde::engine {

// Where a rank sleeps and what wakes it. Real time, or a test's.
struct TimeSource {
  const Clock* clock = nullptr;
  os::Sleeper* sleeper = nullptr;
};

struct Parts {
  Topology topology;
  Settings settings;
  TimeSource time;
  // "shm" or "tcp", and why not shm.
  std::string transport;
  std::string transport_reason;

  // Destroyed in reverse order: memory and event set outlive what uses them.
  std::shared_ptr<member::HostMemory> memory;  // of the host; private where nothing is shared
  std::unique_ptr<os::EventSet> events;
  std::unique_ptr<control::Board> board;
  std::unique_ptr<transport::Waker> waker;
  std::unique_ptr<transport::Arena> arena;
  std::unique_ptr<member::StoreClient> store;  // absent: a job of one
  std::string store_owner;                     // whose end its end means: "the launcher", or rank 0's name
  std::unique_ptr<member::Greeter> greeter;    // absent: nobody connects
  std::unique_ptr<transport::TcpLinkTable> links;
  std::unique_ptr<control::Carrier> coordinator;            // absent on rank 0
  std::vector<std::unique_ptr<control::Carrier>> ranks;     // on rank 0: one per rank, the own one absent
  std::vector<std::unique_ptr<backend::Backend>> backends;  // in order of preference
  std::vector<std::shared_ptr<void>> keep;                  // what backends refer to
};

}  // namespace ronde::engine
