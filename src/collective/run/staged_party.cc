// SPDX-License-Identifier: Apache-2.0
#include "collective/run/staged_party.h"

#include <algorithm>

namespace ronde::collective {

using transport::Arena;
using transport::Mark;
using transport::ProgressWord;

StagedContext::StagedContext(transport::Arena& arena, transport::Waker& waker, Rank self, std::vector<int> local_ranks)
    : arena_(&arena),
      waker_(&waker),
      self_(self),
      local_ranks_(std::move(local_ranks)),
      uses_(static_cast<size_t>(arena.layout().slots)) {
  RONDE_CHECK(local_rank(self) >= 0, "a rank shares its own arena");
}

int StagedContext::local_rank(Rank rank) const {
  const auto index = static_cast<size_t>(rank);
  return index < local_ranks_.size() ? local_ranks_[index] : -1;
}

Rank StagedContext::rank_of(int local_rank) const {
  return static_cast<Rank>(std::ranges::find(local_ranks_, local_rank) - local_ranks_.begin());
}

bool StagedContext::shares_arena(std::span<const Rank> members) const {
  return std::ranges::all_of(members, [&](Rank rank) { return local_rank(rank) >= 0; });
}

StagedParty::StagedParty(StagedContext& context, const Batch& batch) : context_(&context), batch_(batch.number) {
  for (const Rank member : batch.members) {
    const int local = context.local_rank(member);
    RONDE_CHECK(local >= 0, "every member of a staged batch shares the arena");
    locals_.push_back(local);
    if (member != context.self()) others_.push_back(local);
  }
  self_ = index_of(batch, context.self());
}

// seq_cst, because a rank that is about to sleep announces that first and looks here once more.
bool StagedParty::reached(int local, Word word, Mark mark) const {
  return (context_->arena().*word)(local).mark.load(std::memory_order_seq_cst) >= mark;
}

bool StagedParty::all_reached(std::span<const int> locals, Word word, Mark mark) {
  if (std::ranges::all_of(locals, [&](int local) { return reached(local, word, mark); })) return true;
  unmet_.locals.assign(locals.begin(), locals.end());
  unmet_.word = word;
  unmet_.mark = mark;
  return false;
}

std::vector<Rank> StagedParty::waits_for() const {
  std::vector<Rank> out;
  for (const int local : unmet_.locals) {
    if (!reached(local, unmet_.word, unmet_.mark)) out.push_back(context_->rank_of(local));
  }
  return out;
}

bool StagedParty::slot_is_free(uint64_t block) {
  const auto& use = context_->use_of((batch_ + block) % slots());
  return all_reached(use.readers, &Arena::done, use.mark);
}

void StagedParty::publish_packed(uint64_t block) {
  auto& use = context_->use_of((batch_ + block) % slots());
  use.mark = mark(block);
  use.readers.assign(others_.begin(), others_.end());
  store(context_->arena().packed(locals_[self_]), mark(block));
}

void StagedParty::publish_arrival() {
  store(context_->arena().packed(locals_[self_]), mark(0));
}

void StagedParty::publish_reduced(uint64_t block) {
  store(context_->arena().reduced(locals_[self_]), mark(block));
}

void StagedParty::publish_done(uint64_t block) {
  store(context_->arena().done(locals_[self_]), mark(block));
}

void StagedParty::store(ProgressWord& word, Mark mark) {
  word.mark.store(mark, std::memory_order_seq_cst);
  context_->waker().wake(others_);
}

bool StagedParty::has_packed(size_t member, uint64_t block) {
  return all_reached({&locals_[member], 1}, &Arena::packed, mark(block));
}

bool StagedParty::all_packed(uint64_t block) {
  return all_reached(locals_, &Arena::packed, mark(block));
}

bool StagedParty::all_reduced(uint64_t block) {
  return all_reached(locals_, &Arena::reduced, mark(block));
}

}  // namespace ronde::collective
