// SPDX-License-Identifier: Apache-2.0
// With one member every reduction is the member's own element, an allgather has its rows, and a broadcast comes from
// itself: output = postscale(prescale(input)), with the roundings of a group.
#include "collective/run/alone.h"

#include "collective/run/copy.h"
#include "collective/run/cursor.h"

namespace ronde::collective {
namespace {

constexpr int64_t kBlockBytes = 256 * 1024;

class Alone final : public Running {
 public:
  explicit Alone(const BoundBatch& bound)
      : line_(whole_spans(bound)),
        cursor_(line_, {0, line_.total()}),
        dtype_(bound.batch.dtype),
        reduction_(reduction_of(bound.batch)) {}

  Result<Progress> advance() override {
    Piece piece;
    if (!cursor_.next(piece, kBlockBytes / static_cast<int64_t>(line_.element_bytes()))) return Progress::Done;
    const auto count = static_cast<size_t>(piece.count);
    if (!reduction_.pre.is_identity()) {
      scale_copy(dtype_, piece.out, piece.in, count, reduction_.pre);
    } else if (piece.in != piece.out) {
      copy_bytes(piece.out, piece.in, count * line_.element_bytes());
    }
    if (!reduction_.post.is_identity()) scale_copy(dtype_, piece.out, piece.out, count, reduction_.post);
    return Progress::Working;
  }
  std::vector<Rank> waits_for() const override { return {}; }

 private:
  SpanList line_;
  SpanCursor cursor_;
  DType dtype_;
  Reduction reduction_;
};

}  // namespace

std::unique_ptr<Running> start_alone(const BoundBatch& bound) {
  return std::make_unique<Alone>(bound);
}

}  // namespace ronde::collective
