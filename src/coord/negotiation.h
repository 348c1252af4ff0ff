// SPDX-License-Identifier: Apache-2.0
// Negotiation: one process set on the coordinator. Calls of its members come in; batches and failures are added to the
// decisions. Pure.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "coord/decisions.h"
#include "coord/ledger.h"
#include "coord/mismatch.h"
#include "coord/ready_queue.h"

namespace ronde::coord {

class Negotiation {
 public:
  // `decisions` outlives it.
  Negotiation(SetId set, std::vector<Rank> members, const CoordinatorOptions& options, Decisions* decisions);

  bool is_member(Rank rank) const { return ledger_.is_member(rank); }
  // The next running number of the rank's unnamed operations; an error if `number` is another.
  Status count_unnamed(Rank rank, uint64_t number);

  // One call of the user: one operation or a group. An error: no member of ours would have sent it.
  Status enter(Rank rank, const std::vector<Entry>& call, bool more, Time now);
  void flush(Rank rank);
  // Nothing can succeed any more.
  void end(const Status& why);

  // The changes of sets that are among what was cut, in order.
  std::vector<Signature> cut_due(Time now);
  void raise_deadlines(Time now);
  Time next_deadline() const;

 private:
  struct OfRank {
    uint64_t next_number = 0;  // of its unnamed operations
    bool may_hold = false;     // has submitted with `more` since its last flush
  };
  OfRank& of(Rank rank) { return of_rank_[static_cast<size_t>(rank)]; }

  Status place_call(Rank rank, const std::vector<Entry>& call, bool more, Time now);
  Status begin_or_fail(Rank rank, const std::vector<Entry>& call, bool more, Time now);
  void join(Rank rank, Unit& unit, const std::vector<Entry>& call, bool more, Time now);
  Status disagreement(Rank rank, const Unit& unit, const std::vector<Entry>& call) const;
  Status measure(Unit& unit) const;
  int64_t bytes_of(const BatchEntry& entry) const;

  void fail_unit(Unit& unit, const Status& status);
  void fail_call(Rank rank, const std::vector<Entry>& call, const Status& status);

  Call call_of(Rank rank, const std::vector<Entry>& call) const;
  Call call_of(const Unit& unit) const;

  SetId set_;
  CoordinatorOptions options_;
  Decisions* decisions_;
  Ledger ledger_;
  ReadyQueue ready_;
  std::vector<OfRank> of_rank_;
  Status gone_;  // why nothing can succeed any more
};

}  // namespace ronde::coord
