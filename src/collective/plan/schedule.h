// SPDX-License-Identifier: Apache-2.0
// Schedule: what one member does in a collective, as plain data. An algorithm is a pure function that returns one; the
// checker (checker.h) proves it, the executor (collective/run) runs it over Links, the simulator times it.
//
// Data is cut into numbered chunks; which bytes a chunk has is not the plan's business. Peers are indices into the
// members of the batch. A round is done by sending and receiving at the same time. What a round receives may be sent in
// the next round.
#pragma once

#include <cstdint>
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
  // -1: none.
  int finish_chunk = -1;
};

struct Schedule {
  int chunks = 1;
  std::vector<Round> rounds;
};

// One row per algorithm.
struct Algorithm {
  std::string_view name;
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

}  // namespace ronde::collective
