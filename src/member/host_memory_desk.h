// SPDX-License-Identifier: Apache-2.0
// HostMemoryDesk: what the broker decides: who gets which descriptors. No sockets.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "member/broker.h"

namespace ronde::member {

// Thread: one.
class HostMemoryDesk {
 public:
  explicit HostMemoryDesk(BrokerServer::Create create) : create_(std::move(create)) {}

  // The descriptors for this rank, in the order of the wire, valid until the next call; or why it gets none.
  Result<std::vector<int>> ask(const HostMemoryRequest& request);

 private:
  struct Set {
    HostMemoryRequest first;  // who asked first
    Status failure;           // if the memory could not be made
    HostMemory memory;
    std::set<int32_t> taken;  // local ranks
  };
  Status check(const HostMemoryRequest& request) const;
  static Result<HostMemory> make(const HostMemoryRequest& request, const BrokerServer::Create& create);
  static std::vector<int> descriptors(const HostMemory& memory);

  BrokerServer::Create create_;
  std::optional<Set> set_;
  std::optional<HostMemory> handed_out_;  // kept until the next call, for the sender
};

}  // namespace ronde::member
