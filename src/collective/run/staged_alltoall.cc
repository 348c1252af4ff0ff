// SPDX-License-Identifier: Apache-2.0
// Staged alltoall: members tell one another how many rows are coming, then each copies its rows, block after block,
// into its slots, and each reads its own part of all slots.
//
// Block 0 of a member's slots is its table: the rows for each member, and how many blocks of data it will pack. Blocks
// 1, 2, ... are divided evenly among the members: part i has the rows for member i. All take as many steps as the one
// with the most blocks. At step b a member reads its part of block b of every other member that has one, in member
// order, then stores `done`. It packs ahead of that as far as its slots are free. Own rows go straight from the input
// to the output, which is allocated when the tables were read.
//
// Memory traffic: what is for others is written to slots and read there once. A block holds a part for each member even
// where a member sends nothing to some of them.
#include <algorithm>
#include <cstring>

#include "collective/run/copy.h"
#include "collective/run/exchange.h"
#include "collective/run/slot_parts.h"
#include "collective/run/staged_start.h"

namespace ronde::collective {
namespace {

class StagedAlltoall final : public Running {
 public:
  StagedAlltoall(const StagedParty& party, const BoundBatch& bound, const transport::ArenaLayout& layout)
      : party_(party),
        bound_(&bound),
        row_bytes_(row_bytes(bound.batch)),
        parts_(layout, party.size(), 1),
        sends_(exchange_parts(bound.bindings[0].splits, row_bytes_)) {
    RONDE_CHECK((party.size() + 1) * sizeof(int64_t) <= layout.slot_bytes, "a slot has room for a table");
    for (size_t to = 0; to < party.size(); ++to) {
      if (to != party.self()) own_blocks_ = std::max(own_blocks_, parts_.blocks(sends_[to].bytes));
    }
  }

  Result<Progress> advance() override {
    if (receives_.empty()) return meet();
    if (is_done()) return Progress::Done;
    // Others wait for the own block of this step; those of later steps can wait.
    const bool late = packed_ <= step_;
    if (!(late && pack()) && !unpack() && !pack() && !own_.copy_piece()) return Progress::Blocked;
    return is_done() ? Progress::Done : Progress::Working;
  }
  std::vector<Rank> waits_for() const override { return party_.waits_for(); }

 private:
  // Tables: tells the own one, reads those of all.
  Result<Progress> meet() {
    if (!told_ && !tell()) return Progress::Blocked;
    if (!party_.all_packed(0)) return Progress::Blocked;
    std::vector<int64_t> rows(party_.size());
    for (size_t i = 0; i < party_.size(); ++i) {
      rows[i] = entry(i, party_.self());
      steps_ = std::max(steps_, static_cast<uint64_t>(entry(i, party_.size())));
    }
    party_.publish_done(0);
    RONDE_ASSIGN(out_, bound_->allocate(0, rows));
    receives_ = exchange_parts(rows, row_bytes_);
    const ExchangePart& from = sends_[party_.self()];
    own_ = OwnRows(input() + from.begin, out_ + receives_[party_.self()].begin, from.bytes);
    return is_done() ? Progress::Done : Progress::Working;
  }

  bool tell() {
    if (!party_.slot_is_free(0)) return false;
    std::byte* table = party_.slot(party_.self(), 0);
    const std::vector<int64_t>& splits = bound_->bindings[0].splits;
    const auto blocks = static_cast<int64_t>(own_blocks_);
    std::memcpy(table, splits.data(), splits.size() * sizeof(int64_t));
    std::memcpy(table + splits.size() * sizeof(int64_t), &blocks, sizeof blocks);
    party_.publish_packed(0);
    return told_ = true;
  }

  int64_t entry(size_t member, size_t place) const {
    int64_t out = 0;
    std::memcpy(&out, party_.slot(member, 0) + place * sizeof out, sizeof out);
    return out;
  }

  bool is_done() const { return step_ > steps_ && own_.done(); }

  bool pack() {
    if (packed_ > own_blocks_ || !party_.slot_is_free(packed_)) return false;
    std::byte* slot = party_.slot(party_.self(), packed_);
    for (size_t to = 0; to < party_.size(); ++to) {
      if (to == party_.self()) continue;
      const ExchangePart piece = block_of(sends_[to], packed_);
      if (piece.bytes > 0) party_.writer().write(slot + parts_.begin(to), input() + piece.begin, piece.bytes);
    }
    party_.publish_packed(packed_++);
    return true;
  }

  bool unpack() {
    const bool owes_block = packed_ <= step_ && step_ <= own_blocks_;  // which belongs to the step
    if (step_ > steps_ || owes_block) return false;
    for (; from_ < party_.size(); ++from_) {
      const ExchangePart piece = from_ == party_.self() ? ExchangePart{} : block_of(receives_[from_], step_);
      if (piece.bytes == 0) continue;
      if (!party_.has_packed(from_, step_)) return false;
      copy_bytes(out_ + piece.begin, party_.slot(from_, step_) + parts_.begin(party_.self()), piece.bytes);
    }
    // A slot that is packed may be written again only when all have said `done`, and so all say it of each step.
    from_ = 0;
    party_.publish_done(step_++);
    return true;
  }

  // What of a part lies in block b = 1, 2, ...
  ExchangePart block_of(const ExchangePart& part, uint64_t b) const {
    const size_t begin = std::min(static_cast<size_t>(b - 1) * parts_.bytes(), part.bytes);
    return {part.begin + begin, std::min(parts_.bytes(), part.bytes - begin)};
  }
  const std::byte* input() const { return static_cast<const std::byte*>(bound_->bindings[0].in); }

  StagedParty party_;
  const BoundBatch* bound_;
  size_t row_bytes_;
  SlotParts parts_;
  std::vector<ExchangePart> sends_;     // by member
  std::vector<ExchangePart> receives_;  // by member; empty until the tables were read
  std::byte* out_ = nullptr;
  uint64_t own_blocks_ = 0;
  uint64_t steps_ = 0;  // blocks of the member with the most
  bool told_ = false;
  uint64_t packed_ = 1;  // the next block to pack
  uint64_t step_ = 1;    // the next block to read
  size_t from_ = 0;      // the member to read next
  OwnRows own_;
};

}  // namespace

std::unique_ptr<Running> start_staged_alltoall(const StagedParty& party, const BoundBatch& bound,
                                               const transport::ArenaLayout& layout) {
  return std::make_unique<StagedAlltoall>(party, bound, layout);
}

}  // namespace ronde::collective
