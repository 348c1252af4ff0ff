// SPDX-License-Identifier: Apache-2.0
// Pairwise reducescatter: n chunks, chunk i goes to member i and may have any size.
//
// In round r = 1 ... n-1 member i sends its part of chunk i+r straight to that member, and adds the part of chunk i
// that comes from member i-r to its own. Bytes: each member sends its parts of all chunks but its own, the least that
// is possible; n-1 rounds of latency. A part arrives where its sum is made, so that a member keeps the input as it is
// and needs memory only for what has just arrived (Thakur, Rabenseifner, Gropp: Optimization of Collective
// Communication Operations in MPICH, 2005, section 4.2.2: the pairwise exchange).
#include "collective/plan/ring_index.h"
#include "collective/plan/schedule.h"

namespace ronde::collective {

Schedule pairwise_reducescatter(int index, int size, int /*root*/) {
  const Ring ring{index, size};
  Schedule out{.chunks = size, .rounds = {}};
  for (int r = 1; r < size; ++r) {
    out.rounds.push_back({.send_to = ring.wrap(index + r),
                          .send_chunk = ring.wrap(index + r),
                          .recv_from = ring.wrap(index - r),
                          .recv_chunk = index,
                          .on_receive = OnReceive::Reduce,
                          .finish_chunk = r == size - 1 ? index : -1});
  }
  return out;
}

}  // namespace ronde::collective
