// SPDX-License-Identifier: Apache-2.0
// Broker: hands the shared memory of a host to its ranks, as descriptors over an abstract Unix socket, after the hello.
// It lives in the host's agent, or without a launcher in the lowest rank of the host. One set of descriptors per epoch:
// made at the first request, let go of when every local rank has taken it. Whether this works decides the transport
// between two ranks: an abstract socket does not cross a network namespace.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "member/hello.h"
#include "os/doorbell.h"
#include "os/region.h"

namespace ronde::member {

// What a rank needs; all local ranks must ask for the same.
struct HostMemoryRequest {
  uint32_t epoch = 0;
  int32_t local_rank = 0;
  int32_t local_size = 1;
  uint64_t board_bytes = 0;
  uint64_t arena_bytes = 0;
  bool operator==(const HostMemoryRequest&) const = default;
};

struct HostMemory {
  os::Region board;
  os::Region arena;
  std::vector<std::array<os::Doorbell, 2>> bells;  // [local rank][loop, waiter]
};

class BrokerServer {
 public:
  // Runs a thread "ronde-broker". `name` is the abstract socket.
  static Result<std::unique_ptr<BrokerServer>> start(const std::string& name, const Key& key);
  ~BrokerServer();

 private:
  struct State;
  explicit BrokerServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A name that nobody can guess: "ronde-" and 16 random bytes in hex.
std::string random_broker_name();

Result<HostMemory> fetch_host_memory(const std::string& broker_name, const Key& key, const HostMemoryRequest& request,
                                     Time deadline);

}  // namespace ronde::member
