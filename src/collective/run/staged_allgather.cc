// SPDX-License-Identifier: Apache-2.0
// Staged allgather: each member copies its rows, block after block, into its slots; all others copy them out.
//
// Members may have different numbers of rows, and so of blocks; blocks have one size, made for the member with the
// most. At step b a member reads block b of every other member that has one, in member order, then stores `done`. It
// packs ahead of that as far as its slots are free. Own rows go straight from the input to the output. Memory traffic:
// each member reads its input and writes its output once.
#include <algorithm>

#include "collective/run/blocks.h"
#include "collective/run/copy.h"
#include "collective/run/staged_start.h"

namespace ronde::collective {
namespace {

class StagedAllgather final : public Running {
 public:
  StagedAllgather(const StagedParty& party, const BoundBatch& bound, const transport::ArenaLayout& layout)
      : party_(party) {
    int64_t most = 0;
    size_t all_bytes = 0;
    for (size_t i = 0; i < party.size(); ++i) {
      rows_.push_back(rows_of(bound, i, party.self()));
      most = std::max(most, rows_.back().total());
      all_bytes += rows_.back().total_bytes();
    }
    to_output_ = copy_to_output(all_bytes);
    const BlockPlan longest = plan_blocks(most, rows_[0].element_bytes(), party.size(), layout);
    steps_ = longest.blocks;
    for (const SpanList& rows : rows_) {
      const int64_t size = longest.block_elements;
      const auto blocks = static_cast<uint64_t>((rows.total() + size - 1) / size);
      plans_.push_back({.elements = rows.total(), .block_elements = size, .blocks = blocks});
    }
  }

  Result<Progress> advance() override {
    if (step_ == steps_) return Progress::Done;
    // Others wait for the own block of this step; those of later steps can wait.
    const bool late = packed_ <= step_;
    if (!(late && pack()) && !unpack() && !pack()) return Progress::Blocked;
    skip();
    return step_ == steps_ ? Progress::Done : Progress::Working;
  }
  std::vector<Rank> waits_for() const override { return party_.waits_for(); }

 private:
  bool pack() {
    const size_t self = party_.self();
    if (packed_ == plans_[self].blocks || !party_.slot_is_free(packed_)) return false;
    std::byte* slot = party_.slot(self, packed_);
    SpanCursor cursor(rows_[self], plans_[self].block(packed_));
    for (Piece piece; cursor.next(piece);) {
      const size_t bytes = static_cast<size_t>(piece.count) * rows_[self].element_bytes();
      party_.writer().write(slot, piece.in, bytes);
      to_output_(piece.out, piece.in, bytes);
      slot += bytes;
    }
    party_.publish_packed(packed_++);
    return true;
  }

  // The current step's block of one member.
  bool unpack() {
    skip();
    if (step_ == steps_ || from_ == party_.size() || from_ == party_.self()) return false;
    if (!party_.has_packed(from_, step_)) return false;
    const std::byte* slot = party_.slot(from_, step_);
    SpanCursor cursor(rows_[from_], plans_[from_].block(step_));
    for (Piece piece; cursor.next(piece);) {
      const size_t bytes = static_cast<size_t>(piece.count) * rows_[from_].element_bytes();
      to_output_(piece.out, slot, bytes);
      slot += bytes;
    }
    ++from_;
    return true;
  }

  // Passes over the members from which nothing is to be read at this step, and ends the step after the last.
  // The own block counts as read when it is packed.
  void skip() {
    while (step_ < steps_) {
      while (from_ < party_.size() && nothing_to_read(from_)) ++from_;
      if (from_ < party_.size()) return;
      party_.publish_done(step_++);
      from_ = 0;
    }
  }
  bool nothing_to_read(size_t member) const {
    if (member == party_.self()) return packed_ > step_ || step_ >= plans_[member].blocks;
    return step_ >= plans_[member].blocks;
  }

  StagedParty party_;
  std::vector<SpanList> rows_;    // by member
  std::vector<BlockPlan> plans_;  // by member
  Copy to_output_ = copy_bytes;
  uint64_t steps_ = 0;  // blocks of the longest
  uint64_t packed_ = 0;
  uint64_t step_ = 0;
  size_t from_ = 0;  // the member to read next
};

}  // namespace

std::unique_ptr<Running> start_staged_allgather(const StagedParty& party, const BoundBatch& bound,
                                                const transport::ArenaLayout& layout) {
  return std::make_unique<StagedAllgather>(party, bound, layout);
}

}  // namespace ronde::collective
