// SPDX-License-Identifier: Apache-2.0
// Schedule: what one member does in a collective, as plain data. An algorithm is a pure function that returns one; the
// checker (checker.h) proves it, the executor (collective/run) runs it over Links, the simulator times it.
//
// Data is cut into numbered chunks; which bytes a chunk has is not the plan's business. Peers are indices into the
// members of the batch. A round is done by sending and receiving at the same time. What a round receives may be sent in
// the next round. All members' schedules have the same number of rounds, and what is sent in a round is received in the
// round of the same number.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ronde::collective {

enum class OnReceive : uint8_t {
  Reduce,  // combine into the own chunk
  Copy,    // replaces the own chunk
};

constexpr int kNobody = -1;

struct Round {
  int send_to = kNobody;
  int send_chunk = 0;
  int recv_from = kNobody;
  int recv_chunk = 0;
  OnReceive on_receive = OnReceive::Copy;
  // The chunk that is complete after this round and is to be finished here (post-scaled) before anybody else gets it;
  // -1: none. It is the chunk that the round receives.
  int finish_chunk = -1;
  bool operator==(const Round&) const = default;
};

struct Schedule {
  int chunks = 1;
  std::vector<Round> rounds;
};

// What holds before and after, for every chunk c.
enum class Promise : uint8_t {
  SumEverywhere,     // before: each member has its own part of c; after: all have the sum of all parts, finished
  GatherEverywhere,  // before: member c has c; after: all have it
  RootEverywhere,    // before: the root has c; after: all have it
  SumAtOwner,        // before: each member has its own part of c; after: member c has the sum of all parts, finished
};

// One row per algorithm.
struct Algorithm {
  std::string_view name;
  Promise promise;
  Schedule (*plan)(int index, int size, int root);
};

// Sum over all members of every chunk, everywhere.
Schedule ring_allreduce(int index, int size, int root);
// Chunk i, which member i has at the start, everywhere.
Schedule ring_allgather(int index, int size, int root);
// All chunks of `root`, everywhere, passed along the ring chunk by chunk.
Schedule ring_broadcast(int index, int size, int root);
// Nobody is done before everybody has begun; chunks are empty.
Schedule ring_barrier(int index, int size, int root);

// Sum over all members of chunk i at member i.
Schedule pairwise_reducescatter(int index, int size, int root);

constexpr Algorithm kRingAllreduce{"ring_allreduce", Promise::SumEverywhere, ring_allreduce};
constexpr Algorithm kRingAllgather{"ring_allgather", Promise::GatherEverywhere, ring_allgather};
constexpr Algorithm kRingBroadcast{"ring_broadcast", Promise::RootEverywhere, ring_broadcast};
constexpr Algorithm kRingBarrier{"ring_barrier", Promise::GatherEverywhere, ring_barrier};
constexpr Algorithm kPairwiseReducescatter{"pairwise_reducescatter", Promise::SumAtOwner, pairwise_reducescatter};

// Every algorithm that there is.
std::span<const Algorithm> algorithms();

}  // namespace ronde::collective
