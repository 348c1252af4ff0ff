// SPDX-License-Identifier: Apache-2.0
// Ledger: which ranks of one set have submitted what, until it is cut or has failed. Pure.
//
// Words. A unit is one call of the user (one operation, or a group): it is agreed, cut and failed as a whole. The n-th
// submission of a rank under a key belongs to the n-th generation of that key, so that ranks never mix up two uses of
// one name.
//
// A rank has at most one submission in flight under a key. So only failures make generations pile up: a rank that has
// heard of a failure may go on to the next generation while slower ranks have still to submit the failed one. A failed
// generation therefore stays and consumes one submission of each member.
//
// Where the members of groups differ, the calls of all ranks have still to pair up afterwards, although they named
// different things. So a call that runs into a failure is absorbed by it as a whole: names that the failure did not
// have yet become part of it, and ranks whose calls were groups count as having used every name of it. Healthy units
// that the absorbed call also names belong to later calls and stay. Where one call brought several units to fall, a
// call like it is absorbed by all of their failures. (Unnamed operations are consumed strictly one by one instead: each
// rank counts them by itself, and a number never comes back.)
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "coord/codec.h"
#include "coord/rank_set.h"

namespace ronde::coord {

// A rank's submission of one tensor.
struct Entry {
  Key key;
  uint32_t signature = 0;
  int64_t first_dim = -1;
};

struct Unit {
  std::vector<BatchEntry> entries;  // signatures are those of `first`
  Rank first = 0;
  RankSet reported;
  RankSet held;  // have marked it `more` and not flushed since
  Time first_report;
  Time ready_at{};
  int64_t bytes = 0;  // of all its tensors, once ready
  std::list<std::unique_ptr<Unit>>::iterator self;
};

// The submissions of `ranks` under `keys` are over.
struct Ended {
  std::vector<Key> keys;
  std::vector<Rank> ranks;
};

// What failed together. It grows while further calls run into it.
struct Failure {
  uint64_t serial = 0;  // failures in the order in which they came
  uint64_t blow = 0;    // serial of the first of those that one call brought about together
  Status status;
  std::vector<Key> keys;
  RankSet groupers;  // ranks whose call was a group
};

class Ledger {
 public:
  explicit Ledger(std::vector<Rank> members);

  const std::vector<Rank>& members() const { return members_; }
  bool is_member(Rank rank) const { return member_set_.has(rank); }
  // In the order of their first reports.
  const std::list<std::unique_ptr<Unit>>& units() const { return units_; }
  bool is_complete(const Unit& unit) const { return unit.reported.covers(member_set_); }
  std::vector<Rank> missing(const Unit& unit) const;

  // Where the next submission of `rank` under `key` belongs: a unit, or a generation that has failed, or neither: a new
  // one.
  struct Place {
    Unit* unit = nullptr;
    const Failure* failure = nullptr;
  };
  // An error if the rank has this key in flight.
  Result<Place> place(Rank rank, const Key& key) const;

  // The units that fail_call() ends, each once.
  std::vector<Unit*> struck_by(Rank rank, std::span<const Entry> call) const;

  // A new unit, still without a submission. All its keys have new places.
  Unit& open(Rank first, std::span<const Entry> call, Time now);
  // The submission belongs to `unit`; its keys and signatures are the unit's.
  void join(Unit& unit, Rank rank, std::span<const Entry> call);
  // The unit was cut.
  void close(Unit& unit);

  // The oldest failure among the places of a call, or null.
  const Failure* failure_met(Rank rank, std::span<const Entry> call) const { return oldest_met(rank, call).get(); }

  // The unit has failed for all that have submitted it; the others will hear of it at their submission.
  Ended fail(Unit& unit, const Status& status);
  // A call that cannot belong to one healthy unit: it ends, and so do the units it strikes.
  std::vector<Ended> fail_call(Rank rank, std::span<const Entry> call, const Status& status);
  // Every unit ends, neighbours with the same ranks in one, and nothing is remembered (no operation of this set can
  // succeed any more).
  std::vector<Ended> fail_everything();

 private:
  struct Generation {
    Unit* unit = nullptr;  // null: failed
    std::shared_ptr<Failure> failure;
    RankSet seen;  // of a failed one: ranks whose submission it has consumed
  };
  using Generations = std::vector<Generation>;

  static bool has_seen(const Generation& generation, Rank rank);
  const Generation* next_of(Rank rank, const Key& key) const;
  std::shared_ptr<Failure> oldest_met(Rank rank, std::span<const Entry> call) const;
  std::vector<std::shared_ptr<Failure>> absorbers(Rank rank, std::span<const Entry> call) const;
  std::shared_ptr<Failure> make_failure(const Status& status);
  void bury(Unit& unit, const std::shared_ptr<Failure>& failure);
  void absorb(Rank rank, const Key& key, std::span<const std::shared_ptr<Failure>> failures);
  void settle(const Failure& failure);
  size_t index_of(Rank rank) const;

  std::vector<Rank> members_;
  RankSet member_set_;
  std::list<std::unique_ptr<Unit>> units_;
  std::unordered_map<Key, Generations, KeyHash> slots_;
  uint64_t last_failure_ = 0;
};

}  // namespace ronde::coord
