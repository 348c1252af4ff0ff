// SPDX-License-Identifier: Apache-2.0
// Staged reducescatter: each member copies the others' rows, block after block, into its slots; their owner combines
// them from there into its output.
//
// A slot is divided evenly among the members: block b of the rows of member i lies in part i of each slot. Members get
// different numbers of rows, and so of blocks; all take as many steps as the one with the most. At step b a member
// combines block b of its own rows, its input first to last member in rank order, then stores `done`. It packs ahead of
// that as far as its slots are free. Own rows are read from the input. Halves are rounded once, after the postscale.
//
// Memory traffic: input read once, (n-1)/n of it written to slots and read there by the owners, output written once.
#include <algorithm>

#include "collective/run/cursor.h"
#include "collective/run/slot_parts.h"
#include "collective/run/staged_start.h"

namespace ronde::collective {
namespace {

// What is worked on at a time stays in the first-level cache.
constexpr size_t kTileBytes = 16 * 1024;

class StagedReducescatter final : public Running {
 public:
  StagedReducescatter(const StagedParty& party, const BoundBatch& bound, const transport::ArenaLayout& layout)
      : party_(party),
        dtype_(bound.batch.dtype),
        reduction_(reduction_of(bound.batch)),
        parts_(layout, party.size(), size_of(dtype_)),
        sources_(party.size()) {
    int64_t most = 0;
    for (size_t i = 0; i < party.size(); ++i) {
      rows_.push_back(rows_of(bound, i, party.self()));
      most = std::max(most, rows_.back().total());
    }
    block_elements_ = static_cast<int64_t>(parts_.bytes() / size_of(dtype_));
    steps_ = parts_.blocks(static_cast<uint64_t>(most) * size_of(dtype_));
  }

  Result<Progress> advance() override {
    if (step_ == steps_) return Progress::Done;
    // Others wait for the own block of this step; those of later steps can wait.
    const bool late = packed_ <= step_;
    if (!(late && pack()) && !reduce() && !pack()) return Progress::Blocked;
    return step_ == steps_ ? Progress::Done : Progress::Working;
  }
  std::vector<Rank> waits_for() const override { return party_.waits_for(); }

 private:
  // Block b of a member's rows; empty where it has so many no more.
  Range block(size_t member, uint64_t b) const {
    const int64_t begin = static_cast<int64_t>(b) * block_elements_;
    const int64_t end = rows_[member].total();
    return {std::min(begin, end), std::min(begin + block_elements_, end)};
  }
  size_t bytes(int64_t elements) const { return static_cast<size_t>(elements) * size_of(dtype_); }

  bool pack() {
    if (packed_ == steps_ || !party_.slot_is_free(packed_)) return false;
    for (size_t owner = 0; owner < party_.size(); ++owner) {
      if (owner != party_.self()) pack_rows(owner);
    }
    party_.publish_packed(packed_++);
    return true;
  }

  // input, scaled, -> slot
  void pack_rows(size_t owner) {
    std::byte* slot = party_.slot(party_.self(), packed_) + parts_.begin(owner);
    SpanCursor cursor(rows_[owner], block(owner, packed_));
    for (Piece piece; cursor.next(piece, tile_elements());) {
      party_.writer().write(slot, scaled(piece), bytes(piece.count));
      slot += bytes(piece.count);
    }
  }

  bool reduce() {
    if (!party_.all_packed(step_)) return false;
    const size_t self = party_.self();
    size_t offset = parts_.begin(self);
    SpanCursor cursor(rows_[self], block(self, step_));
    for (Piece piece; cursor.next(piece, tile_elements());) {
      for (size_t i = 0; i < party_.size(); ++i) sources_[i] = party_.slot(i, step_) + offset;
      sources_[self] = scaled(piece);
      combine(reduction_.combine, dtype_, piece.out, sources_, static_cast<size_t>(piece.count), reduction_.post);
      offset += bytes(piece.count);
    }
    party_.publish_done(step_++);
    return true;
  }

  // What the piece contributes: the input itself, or the tile with it prescaled.
  const std::byte* scaled(const Piece& piece) {
    if (reduction_.pre.is_identity()) return piece.in;
    scale_copy(dtype_, tile_, piece.in, static_cast<size_t>(piece.count), reduction_.pre);
    return tile_;
  }
  int64_t tile_elements() const { return static_cast<int64_t>(kTileBytes / size_of(dtype_)); }

  StagedParty party_;
  DType dtype_;
  Reduction reduction_;
  SlotParts parts_;
  std::vector<const void*> sources_;  // by member
  std::vector<SpanList> rows_;        // by member: those that it gets
  int64_t block_elements_ = 1;
  uint64_t steps_ = 0;  // blocks of the member with the most
  alignas(64) std::byte tile_[kTileBytes];
  uint64_t packed_ = 0;
  uint64_t step_ = 0;
};

}  // namespace

std::unique_ptr<Running> start_staged_reducescatter(const StagedParty& party, const BoundBatch& bound,
                                                    const transport::ArenaLayout& layout) {
  return std::make_unique<StagedReducescatter>(party, bound, layout);
}

}  // namespace ronde::collective
