// SPDX-License-Identifier: Apache-2.0
// ReadyQueue: the units of one set that all members have submitted, in the order in which they became ready, and when
// they are due to be cut. Pure.
//
// A unit that nobody holds back with `more` is due at once. The others wait for the flush of those who hold them; with
// cut_early also only until the held ones together have `batch_bytes`, or the oldest has been ready for `hold`.
//
// `hold` doubles each time it cuts, until all members have flushed: otherwise a step that takes long on one rank would
// make a batch every few milliseconds, although most of the overlap is won by the first ones. So a step of T makes at
// most log2(T / hold) + 1 batches this way.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "coord/ledger.h"
#include "coord/rank_set.h"

namespace ronde::coord {

// `start` + `span`, or kNever where that is beyond the end of time.
inline Time time_after(Time start, Duration span) {
  return span >= kNever - start ? kNever : start + span;
}

struct HoldLimits {
  bool cut_early = false;
  int64_t batch_bytes = 0;
  Duration hold{};
};

class ReadyQueue {
 public:
  ReadyQueue(const HoldLimits& limits, const std::vector<Rank>& members)
      : limits_(limits), members_(members), hold_(limits.hold) {}

  // The unit is complete; its bytes and ready_at are set.
  void push(Unit& unit);
  // Nobody holds the unit, which is in the queue, any more.
  void on_released(const Unit& unit);
  // The unit has failed; it may be in the queue.
  void remove(const Unit& unit);
  void on_flush(Rank rank);
  void clear();

  std::vector<Unit*> take_due(Time now);
  // When something is due; kNever if nothing is without a further report.
  Time next_due() const;

 private:
  bool hold_is_over(Time now) const;

  HoldLimits limits_;
  RankSet members_;
  RankSet flushed_;  // since `hold_` was reset
  Duration hold_;
  std::vector<Unit*> units_;
  size_t released_ = 0;     // of units_, those nobody holds
  int64_t held_bytes_ = 0;  // of the others
};

}  // namespace ronde::coord
