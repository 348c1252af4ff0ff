// SPDX-License-Identifier: Apache-2.0
// Ring broadcast: the root's data is passed along the ring as a pipeline of n chunks; the root's left neighbour is its
// end.
//
// The member at distance d from the root receives chunk c in round c+d-1 and passes it on in round c+d.
// Bytes: every member but the last sends the data once; n chunks + n-2 rounds of latency.
#include "collective/plan/ring_index.h"
#include "collective/plan/schedule.h"

namespace ronde::collective {

Schedule ring_broadcast(int index, int size, int root) {
  const Ring ring{index, size};
  const int chunks = size;
  const int distance = ring.wrap(index - root);
  const auto exists = [&](int chunk) { return chunk >= 0 && chunk < chunks; };
  Schedule out{.chunks = chunks, .rounds = {}};
  for (int r = 0; size > 1 && r < chunks + size - 2; ++r) {
    Round round;
    if (const int chunk = r - distance; exists(chunk) && distance < size - 1) {
      round.send_to = ring.right();
      round.send_chunk = chunk;
    }
    if (const int chunk = r - distance + 1; exists(chunk) && distance > 0) {
      round.recv_from = ring.left();
      round.recv_chunk = chunk;
    }
    out.rounds.push_back(round);
  }
  return out;
}

}  // namespace ronde::collective
