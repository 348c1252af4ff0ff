// SPDX-License-Identifier: Apache-2.0
// Bootstrap: from an identity to the parts of an engine, by way of the store. Runs in the user's thread, before the
// engine does; everything has the init deadline. Together with backends.cc the only place that names concrete parts.
//
//   1. connect to the store (rank 0 of a job started by hand is the store), prove the key
//   2. "open": the epoch opens when all have arrived; everybody knows who is where
//   3. one host and not forced to tcp: fetch the host's memory from the broker; "memory": did it work everywhere?
//   4. else "addresses": everybody listens; control links to rank 0 are made. Data links follow at first use
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/identity.h"
#include "engine/parts.h"

namespace ronde::engine {

// What a process keeps from epoch to epoch when it was started by hand: rank 0 the store, the lowest rank of a host its
// broker. Thread: one at a time.
struct ProcessServices {
  std::unique_ptr<member::StoreServer> store;
  std::unique_ptr<member::BrokerServer> broker;
  std::string broker_name;
};

// Where the memory of the host comes from: the broker; in tests, memory of this process.
using MemorySource = std::function<Result<std::shared_ptr<member::HostMemory>>(
    const std::string& broker, const member::Key& key, const member::HostMemoryRequest& request, Time deadline)>;
MemorySource memory_from_broker();

struct BootstrapOptions {
  JobIdentity identity;
  Settings settings;
  TimeSource time;
  MemorySource memory;
  std::string host_id;  // equal for ranks that share a kernel, a host name and a network
  std::string host_name;
  ProcessServices* services = nullptr;
};

Result<Parts> bootstrap(const BootstrapOptions& options);

}  // namespace ronde::engine
