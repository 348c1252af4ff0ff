// SPDX-License-Identifier: Apache-2.0
// Ring allgather: n chunks, chunk i belongs to member i and may have any size.
//
// In round r member i sends chunk i-r, its own in the first round, to its right neighbour and receives chunk i-r-1 from
// its left. Bytes: each member sends every chunk but its right neighbour's, once; n-1 rounds of latency.
#include "collective/plan/ring_index.h"
#include "collective/plan/schedule.h"

namespace ronde::collective {

Schedule ring_allgather(int index, int size, int /*root*/) {
  const Ring ring{index, size};
  Schedule out{.chunks = size, .rounds = {}};
  for (int r = 0; r < size - 1; ++r) {
    out.rounds.push_back({.send_to = ring.right(),
                          .send_chunk = ring.wrap(index - r),
                          .recv_from = ring.left(),
                          .recv_chunk = ring.wrap(index - r - 1),
                          .on_receive = OnReceive::Copy});
  }
  return out;
}

}  // namespace ronde::collective
