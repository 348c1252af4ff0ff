// SPDX-License-Identifier: Apache-2.0
// The cursor over a batch: a batch is never copied together, it is walked as pieces of its tensors.
//
// A SpanList is one line of elements laid over memory that lies in many places: the tensors of a batch one after
// another, or the i-th chunks of them, or one member's rows of them. A SpanCursor walks it from any element on. Counts
// are 64-bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "op/batch.h"

namespace ronde::collective {

// Elements that lie densely in the member's memory. `in` is null where the member has no input for them.
struct Piece {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  int64_t count = 0;
};

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Part `index` of `parts` of `count` elements: sizes differ by one at most, the greater ones come first.
Range part_of(int64_t count, int parts, int index);

class SpanList {
 public:
  explicit SpanList(size_t element_bytes) : element_bytes_(element_bytes) {}

  void add(const Piece& span);  // empty ones are left out
  int64_t total() const { return total_; }
  size_t total_bytes() const { return static_cast<size_t>(total_) * element_bytes_; }
  size_t element_bytes() const { return element_bytes_; }
  // The line of the `index`-th of `parts` parts of each span.
  SpanList chunk(int parts, int index) const;

 private:
  friend class SpanCursor;
  size_t element_bytes_;
  int64_t total_ = 0;
  std::vector<Piece> spans_;
  std::vector<int64_t> starts_;  // the element at which each span begins
};

// The tensors of a batch with Output::Same one after another, each whole.
SpanList whole_spans(const BoundBatch& bound);
// The rows of member `owner`. Of an allgather: where they lie in the outputs; in the inputs too if it is `self`. Of a
// reducescatter: where they lie in the inputs; in the outputs too if it is `self`.
SpanList rows_of(const BoundBatch& bound, size_t owner, size_t self);

// `list` outlives the cursor and is not added to meanwhile.
class SpanCursor {
 public:
  SpanCursor(const SpanList& list, Range range);
  // The next piece, of at most `limit` elements; false at the end of the range.
  bool next(Piece& piece, int64_t limit = INT64_MAX);

 private:
  const SpanList* list_;
  size_t span_ = 0;
  int64_t at_;
  int64_t end_;
};

}  // namespace ronde::collective
