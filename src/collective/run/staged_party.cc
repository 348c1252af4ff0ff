// SPDX-License-Identifier: Apache-2.0
#include "collective/run/staged_party.h"

#include <algorithm>

#include "collective/run/member_index.h"

namespace ronde::collective {

using transport::Mark;
using transport::ProgressWord;

namespace {
// seq_cst, because a rank that is about to sleep announces that first and looks here once more.
bool reached(const ProgressWord& word, Mark mark) {
  return word.mark.load(std::memory_order_seq_cst) >= mark;
}
}  // namespace

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

bool StagedParty::slot_is_free(uint64_t block) const {
  const auto& use = context_->use_of((batch_ + block) % slots());
  return std::ranges::all_of(use.readers,
                             [&](int reader) { return reached(context_->arena().done(reader), use.mark); });
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

bool StagedParty::has_packed(size_t member, uint64_t block) const {
  return reached(context_->arena().packed(locals_[member]), mark(block));
}

bool StagedParty::all_packed(uint64_t block) const {
  return std::ranges::all_of(locals_, [&](int local) { return reached(context_->arena().packed(local), mark(block)); });
}

bool StagedParty::all_reduced(uint64_t block) const {
  return std::ranges::all_of(locals_,
                             [&](int local) { return reached(context_->arena().reduced(local), mark(block)); });
}

}  // namespace ronde::collective
