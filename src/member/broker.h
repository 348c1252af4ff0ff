// SPDX-License-Identifier: Apache-2.0
// Broker: hands the shared memory of a host to its ranks, as descriptors over an abstract Unix socket, after the hello.
// It lives in the host's agent, or without a launcher in the lowest rank of the host. One set of descriptors per epoch:
// made at the first request, let go of when every local rank has taken it, or when a later epoch asks. Whether this
// works decides the transport between two ranks: an abstract socket does not cross a network namespace. What failed for
// one rank of an epoch fails alike for the others.
//
// After the hello, each once:
//   rank -> broker   [u32 length] u32 epoch, i32 local rank, i32 local size, u64 board bytes, u64 arena bytes
//   broker -> rank   [u32 length] u8 code, string text; and if the code is Ok the descriptors of board, arena, and two
//                    bells per local rank
#pragma once

#include <array>
#include <cstdint>
#include <functional>
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
  // Runs a thread "ronde-broker". `name` is the abstract socket. `create` makes the regions; another one only in tests.
  using Create = std::function<Result<os::Region>(const char* name, size_t bytes)>;
  static Result<std::unique_ptr<BrokerServer>> start(const std::string& name, const Key& key,
                                                     Create create = os::Region::create_shared);
  ~BrokerServer();

 private:
  struct State;
  explicit BrokerServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A name that nobody can guess: "ronde-" and 16 random bytes in hex.
std::string random_broker_name();

// Unsupported: the broker's system cannot do this, and the message says why. System or Timeout: no broker can be
// reached.
Result<HostMemory> fetch_host_memory(const std::string& broker_name, const Key& key, const HostMemoryRequest& request,
                                     Time deadline);

}  // namespace ronde::member
