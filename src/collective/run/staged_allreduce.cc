// SPDX-License-Identifier: Apache-2.0
// Staged allreduce. The batch is one line of elements, cut into blocks; of each block every member owns a share.
//
// For each block, at each member:
//
//   pack    input, scaled, -> own slot; store `packed`
//   reduce  when all have packed: own share of all members' slots, in rank order, finished -> own slot and output;
//           store `reduced`
//   unpack  when all have reduced: the other shares, from their owners' slots -> output; store `done`
//
// Three cursors, packed >= reduced >= unpacked, the first ahead by up to as many blocks as there are slots. What can be
// done furthest down the line is done first: that frees slots and lets the batch end.
//
// A member's own share is read by nobody else before it is reduced: without a prescale it is not packed at all but read
// from the input. Each element is combined by one member and in rank order, so all members get the same bits, whatever
// the blocks. Halves are rounded once, after the postscale.
//
// Memory traffic: input read once, output written once; 2(n-1)/n of the data is written to slots (slot_writer.h)
// and read from there by others.
#include "collective/run/blocks.h"
#include "collective/run/copy.h"
#include "collective/run/staged_start.h"

namespace ronde::collective {
namespace {

// What is worked on at a time stays in the first-level cache.
constexpr size_t kTileBytes = 16 * 1024;

// What all forms of the collective know.
struct Work {
  StagedParty party;
  SpanList line;
  BlockPlan plan;
  Reduction reduction;
  DType dtype;

  Work(const StagedParty& members, const BoundBatch& bound, const transport::ArenaLayout& layout)
      : party(members),
        line(whole_spans(bound)),
        plan(plan_blocks(line.total(), line.element_bytes(), party.size(), layout)),
        reduction(reduction_of(bound.batch)),
        dtype(bound.batch.dtype) {}
  size_t bytes(int64_t elements) const { return static_cast<size_t>(elements) * line.element_bytes(); }
};

class StagedAllreduce final : public Running {
 public:
  explicit StagedAllreduce(Work work)
      : work_(std::move(work)),
        to_output_(copy_to_output(work_.line.total_bytes())),
        tile_elements_(static_cast<int64_t>(kTileBytes / work_.line.element_bytes())),
        sources_(work_.party.size()) {}

  Result<Progress> advance() override {
    if (unpacked_ == work_.plan.blocks) return Progress::Done;
    if (!unpack() && !reduce() && !pack()) return Progress::Blocked;
    return unpacked_ == work_.plan.blocks ? Progress::Done : Progress::Working;
  }

  std::vector<Rank> waits_for() const override { return work_.party.waits_for(); }

 private:
  StagedParty& party() { return work_.party; }
  Range share(uint64_t block, size_t member) const {
    return share_of(work_.plan.block(block), work_.line.element_bytes(), work_.party.size(), member);
  }
  // Where an element of the block lies in a member's slot.
  std::byte* in_slot(size_t member, uint64_t block, int64_t element) const {
    return work_.party.slot(member, block) + work_.bytes(element - work_.plan.block(block).begin);
  }
  bool reads_own_input() const { return work_.reduction.pre.is_identity(); }

  bool pack() {
    const uint64_t b = packed_;
    if (b == work_.plan.blocks || b >= unpacked_ + party().slots() || !party().slot_is_free(b)) return false;
    const size_t self = party().self();
    const Range block = work_.plan.block(b);
    const Range own = reads_own_input() ? share(b, self) : Range{block.end, block.end};
    pack_range({block.begin, own.begin}, in_slot(self, b, block.begin));
    pack_range({own.end, block.end}, in_slot(self, b, own.end));
    party().publish_packed(packed_++);
    return true;
  }

  // input, scaled, -> slot
  void pack_range(Range range, std::byte* slot) {
    SpanCursor cursor(work_.line, range);
    for (Piece piece; cursor.next(piece, tile_elements_);) {
      const std::byte* from = piece.in;
      if (!reads_own_input()) {
        scale_copy(work_.dtype, tile_, piece.in, static_cast<size_t>(piece.count), work_.reduction.pre);
        from = tile_;
      }
      party().writer().write(slot, from, work_.bytes(piece.count));
      slot += work_.bytes(piece.count);
    }
  }

  bool reduce() {
    const uint64_t b = reduced_;
    if (b == packed_ || !party().all_packed(b)) return false;
    const size_t self = party().self();
    Range at = share(b, self);
    SlotWriter& writer = party().writer();
    writer.begin_block();
    SpanCursor cursor(work_.line, at);
    for (Piece piece; cursor.next(piece, tile_elements_);) {
      for (size_t i = 0; i < party().size(); ++i) sources_[i] = in_slot(i, b, at.begin);
      if (reads_own_input()) sources_[self] = piece.in;
      std::byte* slot = in_slot(self, b, at.begin);
      std::byte* result = writer.in_place() ? slot : tile_;
      combine(work_.reduction.combine, work_.dtype, result, sources_, static_cast<size_t>(piece.count),
              work_.reduction.post);
      if (result == tile_) writer.write_near(slot, tile_, work_.bytes(piece.count));
      to_output_(piece.out, result, work_.bytes(piece.count));
      at.begin += piece.count;
    }
    party().publish_reduced(reduced_++);
    return true;
  }

  bool unpack() {
    const uint64_t b = unpacked_;
    if (b == reduced_ || !party().all_reduced(b)) return false;
    for (size_t owner = 0; owner < party().size(); ++owner) {
      if (owner == party().self()) continue;
      const Range range = share(b, owner);
      unpack_range(range, in_slot(owner, b, range.begin));
    }
    party().publish_done(unpacked_++);
    return true;
  }

  // slot -> output
  void unpack_range(Range range, const std::byte* slot) {
    SpanCursor cursor(work_.line, range);
    for (Piece piece; cursor.next(piece);) {
      to_output_(piece.out, slot, work_.bytes(piece.count));
      slot += work_.bytes(piece.count);
    }
  }

  Work work_;
  Copy to_output_;
  int64_t tile_elements_;
  std::vector<const void*> sources_;  // by member
  alignas(64) std::byte tile_[kTileBytes];
  uint64_t packed_ = 0;
  uint64_t reduced_ = 0;
  uint64_t unpacked_ = 0;
};

// One small block: pack, then each member combines all slots itself, in the same order, which saves the second wait.
class DirectAllreduce final : public Running {
 public:
  explicit DirectAllreduce(Work work) : work_(std::move(work)), sources_(work_.party.size()) {}

  Result<Progress> advance() override {
    if (done_) return Progress::Done;
    if (!packed_ && !pack()) return Progress::Blocked;
    if (!work_.party.all_packed(0)) return Progress::Blocked;
    combine_all();
    work_.party.publish_done(0);
    done_ = true;
    return Progress::Done;
  }

  std::vector<Rank> waits_for() const override { return work_.party.waits_for(); }

 private:
  bool pack() {
    if (!work_.party.slot_is_free(0)) return false;
    std::byte* slot = work_.party.slot(work_.party.self(), 0);
    SpanCursor cursor(work_.line, work_.plan.block(0));
    for (Piece piece; cursor.next(piece);) {
      scale_copy(work_.dtype, slot, piece.in, static_cast<size_t>(piece.count), work_.reduction.pre);
      slot += work_.bytes(piece.count);
    }
    work_.party.publish_packed(0);
    packed_ = true;
    return true;
  }

  void combine_all() {
    SpanCursor cursor(work_.line, work_.plan.block(0));
    size_t offset = 0;
    for (Piece piece; cursor.next(piece);) {
      for (size_t i = 0; i < sources_.size(); ++i) sources_[i] = work_.party.slot(i, 0) + offset;
      combine(work_.reduction.combine, work_.dtype, piece.out, sources_, static_cast<size_t>(piece.count),
              work_.reduction.post);
      offset += work_.bytes(piece.count);
    }
  }

  Work work_;
  std::vector<const void*> sources_;  // by member
  bool packed_ = false;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Running> start_staged_allreduce(const StagedParty& party, const BoundBatch& bound,
                                                const transport::ArenaLayout& layout) {
  Work work(party, bound, layout);
  if (work.plan.direct && work.plan.blocks > 0) return std::make_unique<DirectAllreduce>(std::move(work));
  return std::make_unique<StagedAllreduce>(std::move(work));
}

}  // namespace ronde::collective
