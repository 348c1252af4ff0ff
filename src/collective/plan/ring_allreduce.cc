// SPDX-License-Identifier: Apache-2.0
// Ring allreduce: reduce-scatter, then allgather, along a ring of n members.
//
// Data is cut into n chunks. Reduce-scatter: in round r member i sends chunk i-r to its right neighbour and adds the
// chunk i-r-1 that comes from its left. A chunk so visits all members once and is complete at its last one: after n-1
// rounds member i has all of chunk i+1. Allgather: in round n-1+r member i sends chunk i+1-r and receives i-r, which
// replaces its own.
//
// Bytes: each member sends 2(n-1) chunks, that is 2(n-1)/n of the data, the least that is possible; 2(n-1) rounds of
// latency. Each chunk is summed in one order, at one member, so that all end with the same bits.
#include "collective/plan/ring_index.h"
#include "collective/plan/schedule.h"

namespace ronde::collective {

Schedule ring_allreduce(int index, int size, int /*root*/) {
  const Ring ring{index, size};
  Schedule out{.chunks = size, .rounds = {}};
  for (int r = 0; r < size - 1; ++r) {
    const bool last = r == size - 2;
    const int received = ring.wrap(index - r - 1);
    out.rounds.push_back({.send_to = ring.right(),
                          .send_chunk = ring.wrap(index - r),
                          .recv_from = ring.left(),
                          .recv_chunk = received,
                          .on_receive = OnReceive::Reduce,
                          .finish_chunk = last ? received : -1});
  }
  for (int r = 0; r < size - 1; ++r) {
    out.rounds.push_back({.send_to = ring.right(),
                          .send_chunk = ring.wrap(index + 1 - r),
                          .recv_from = ring.left(),
                          .recv_chunk = ring.wrap(index - r),
                          .on_receive = OnReceive::Copy});
  }
  return out;
}

}  // namespace ronde::collective
