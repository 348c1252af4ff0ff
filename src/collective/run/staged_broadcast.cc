// SPDX-License-Identifier: Apache-2.0
// Staged broadcast: the root copies block after block into its slots, the others copy them out.
//
// root:   for each block: wait until the slot is free; input -> slot (and -> output); store `packed`
// others: for each block: wait for the root's `packed`; slot -> output; store `done`
//
// The root is through when everything lies in its slots; it waits for the readers only before it writes a slot again.
// Memory traffic: the data is read once and written to slots once; each other member reads it there.

#include "collective/run/blocks.h"
#include "collective/run/copy.h"
#include "collective/run/staged_start.h"

namespace ronde::collective {
namespace {

class StagedBroadcast final : public Running {
 public:
  StagedBroadcast(const StagedParty& party, const BoundBatch& bound, const transport::ArenaLayout& layout, size_t root)
      : party_(party),
        line_(whole_spans(bound)),
        plan_(plan_blocks(line_.total(), line_.element_bytes(), party.size(), layout)),
        to_output_(copy_to_output(line_.total_bytes())),
        root_(root) {}

  Result<Progress> advance() override {
    if (at_ == plan_.blocks) return Progress::Done;
    const bool moved = party_.self() == root_ ? pack() : unpack();
    if (!moved) return Progress::Blocked;
    return ++at_ == plan_.blocks ? Progress::Done : Progress::Working;
  }
  std::vector<Rank> waits_for() const override { return party_.waits_for(); }

 private:
  bool pack() {
    if (!party_.slot_is_free(at_)) return false;
    std::byte* slot = party_.slot(root_, at_);
    SpanCursor cursor(line_, plan_.block(at_));
    for (Piece piece; cursor.next(piece);) {
      const size_t bytes = static_cast<size_t>(piece.count) * line_.element_bytes();
      party_.writer().write(slot, piece.in, bytes);
      if (piece.out != piece.in) to_output_(piece.out, piece.in, bytes);
      slot += bytes;
    }
    party_.publish_packed(at_);
    return true;
  }

  bool unpack() {
    if (!party_.has_packed(root_, at_)) return false;
    const std::byte* slot = party_.slot(root_, at_);
    SpanCursor cursor(line_, plan_.block(at_));
    for (Piece piece; cursor.next(piece);) {
      const size_t bytes = static_cast<size_t>(piece.count) * line_.element_bytes();
      to_output_(piece.out, slot, bytes);
      slot += bytes;
    }
    party_.publish_done(at_);
    return true;
  }

  StagedParty party_;
  SpanList line_;
  BlockPlan plan_;
  Copy to_output_;
  size_t root_;
  uint64_t at_ = 0;
};

}  // namespace

std::unique_ptr<Running> start_staged_broadcast(const StagedParty& party, const BoundBatch& bound,
                                                const transport::ArenaLayout& layout) {
  return std::make_unique<StagedBroadcast>(party, bound, layout, index_of(bound.batch, bound.batch.root));
}

}  // namespace ronde::collective
