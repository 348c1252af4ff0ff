// SPDX-License-Identifier: Apache-2.0
// The staged collectives: batches whose members share an Arena (transport/arena.h). One file per collective.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/run/running.h"
#include "collective/run/slot_writer.h"
#include "op/batch.h"
#include "transport/arena.h"

namespace ronde::collective {

// What one rank must remember from batch to batch: who may still read each of its slots, and how
// slots are written best. One per engine and epoch.
// Thread: the one that drives the engine.
class StagedContext {
 public:
  // The last use of a slot: these local ranks read it, and are through with it once their `done` word has reached the
  // mark.
  struct SlotUse {
    transport::Mark mark = 0;
    std::vector<int> readers;
  };

  // local_ranks[r] is the local rank of global rank r in the arena, or -1 if r lives on another host.
  // `arena` and `waker` outlive the context.
  StagedContext(transport::Arena& arena, transport::Waker& waker, Rank self, std::vector<int> local_ranks);

  // -1: not in the arena.
  int local_rank(Rank rank) const;
  Rank rank_of(int local_rank) const;
  Rank self() const { return self_; }
  bool shares_arena(std::span<const Rank> members) const;

  transport::Arena& arena() { return *arena_; }
  transport::Waker& waker() { return *waker_; }
  SlotUse& use_of(uint64_t slot) { return uses_[slot]; }
  SlotWriter& writer() { return writer_; }

 private:
  transport::Arena* arena_;
  transport::Waker* waker_;
  Rank self_;
  std::vector<int> local_ranks_;
  std::vector<SlotUse> uses_;
  SlotWriter writer_;
};

// Every member of the batch shares the arena; batches are started in ascending order of their numbers, each after the
// one before it is done. `bound` and `context` outlive the result.
std::unique_ptr<Running> start_staged(StagedContext& context, const BoundBatch& bound);

}  // namespace ronde::collective
