// SPDX-License-Identifier: Apache-2.0
// Topology: who is where. Made from what every rank says of itself when an epoch opens; pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "op/request.h"

namespace ronde::engine {

// What a rank tells the others when it arrives.
struct Arrival {
  std::string host_id;    // equal for two ranks if they share a kernel, a host name and a network
  std::string host_name;  // for people
  int32_t pid = 0;
  int32_t local_rank = 0;  // as its environment says
  int32_t local_size = 1;
  std::string broker;  // who hands out shared memory on its host; empty: nobody
  // What must be equal on all ranks, as text, to be compared and shown: "transport=auto slots=4 ...".
  std::string agreed_settings;
};

Bytes encode(const Arrival& arrival);
Result<Arrival> decode_arrival(ByteSpan bytes);

struct Peer {
  Arrival arrival;
  int host = 0;  // index into the hosts, in order of their lowest rank
  // "rank 3 (host b, pid 17)"
  std::string name;
};

struct Topology {
  Rank rank = 0;
  Rank size = 1;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
  bool is_homogeneous = true;
  uint32_t epoch = 0;
  std::vector<Peer> peers;        // by rank
  std::vector<Rank> local_ranks;  // ranks of this host, ascending; position is the local rank in shared memory
  bool one_host() const { return local_ranks.size() == static_cast<size_t>(size); }
};

// Errors: local ranks that do not fit their host, settings that differ.
Result<Topology> make_topology(Rank rank, uint32_t epoch, std::span<const Arrival> arrivals);

}  // namespace ronde::engine
