// SPDX-License-Identifier: Apache-2.0
// StagedParty: the members of one batch as they meet in the arena. Members are named by their index in the batch,
// blocks by their number in the batch.
//
// Block b of batch k lies in slot (k + b) % slots, so that small batches in a row do not wait for one another's
// readers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/run/staged.h"

namespace ronde::collective {

class StagedParty {
 public:
  StagedParty(StagedContext& context, const Batch& batch);

  size_t size() const { return locals_.size(); }
  size_t self() const { return self_; }
  uint64_t slots() const { return static_cast<uint64_t>(context_->arena().layout().slots); }
  std::byte* slot(size_t member, uint64_t block) const {
    return context_->arena().slot(locals_[member], batch_ + block);
  }

  SlotWriter& writer() { return context_->writer(); }

  // True once nobody reads what this member's slot for `block` held before.
  bool slot_is_free(uint64_t block);
  // The block lies in this member's slot; all others will read it, and are waited for before the slot is written again.
  void publish_packed(uint64_t block);
  // This member has begun; no slot is used.
  void publish_arrival();
  void publish_reduced(uint64_t block);
  void publish_done(uint64_t block);

  bool has_packed(size_t member, uint64_t block);
  bool all_packed(uint64_t block);
  bool all_reduced(uint64_t block);

  // Whom the condition that was last found unmet waits for.
  std::vector<Rank> waits_for() const;

 private:
  using Word = transport::ProgressWord& (transport::Arena::*)(int);

  bool reached(int local, Word word, transport::Mark mark) const;
  bool all_reached(std::span<const int> locals, Word word, transport::Mark mark);
  transport::Mark mark(uint64_t block) const { return transport::mark_of(batch_, block); }
  void store(transport::ProgressWord& word, transport::Mark mark);

  StagedContext* context_;
  uint64_t batch_;
  size_t self_ = 0;
  std::vector<int> locals_;  // by member
  std::vector<int> others_;  // local ranks of the other members
  struct {
    std::vector<int> locals;
    Word word = nullptr;
    transport::Mark mark = 0;
  } unmet_;
};

}  // namespace ronde::collective
