// SPDX-License-Identifier: Apache-2.0
#include "collective/run/cursor.h"

#include <algorithm>

namespace ronde::collective {
namespace {

// The part of a span from its element `begin` on.
Piece slice(const Piece& span, int64_t begin, int64_t count, size_t element_bytes) {
  const size_t offset = static_cast<size_t>(begin) * element_bytes;
  return {.in = span.in == nullptr ? nullptr : span.in + offset,
          .out = span.out == nullptr ? nullptr : span.out + offset,
          .count = count};
}

}  // namespace

Range part_of(int64_t count, int parts, int index) {
  const int64_t base = count / parts;
  const int64_t longer = count % parts;  // so many parts have one more
  const int64_t begin = base * index + std::min<int64_t>(index, longer);
  return {begin, begin + base + (index < longer ? 1 : 0)};
}

void SpanList::add(const Piece& span) {
  if (span.count == 0) return;
  spans_.push_back(span);
  starts_.push_back(total_);
  total_ += span.count;
}

SpanList SpanList::chunk(int parts, int index) const {
  SpanList out(element_bytes_);
  for (const Piece& span : spans_) {
    const Range part = part_of(span.count, parts, index);
    out.add(slice(span, part.begin, part.count(), element_bytes_));
  }
  return out;
}

SpanList whole_spans(const BoundBatch& bound) {
  SpanList out(size_of(bound.batch.dtype));
  for (size_t t = 0; t < bound.batch.tensors.size(); ++t) {
    const Binding& binding = bound.bindings[t];
    out.add({.in = static_cast<const std::byte*>(binding.in),
             .out = static_cast<std::byte*>(binding.out),
             .count = count_of(bound.batch, t, 0)});
  }
  return out;
}

SpanList rows_of(const BoundBatch& bound, size_t owner, size_t self) {
  const bool gathers = row(bound.batch.op).output == Output::AllRows;
  SpanList out(size_of(bound.batch.dtype));
  for (size_t t = 0; t < bound.batch.tensors.size(); ++t) {
    int64_t before = 0;
    for (size_t i = 0; i < owner; ++i) before += count_of(bound.batch, t, i);
    const int64_t count = count_of(bound.batch, t, owner);
    Piece rows{.in = static_cast<const std::byte*>(bound.bindings[t].in),
               .out = static_cast<std::byte*>(bound.bindings[t].out),
               .count = count};
    // On one side lie the rows of all members, on the other those of one.
    const Piece among_all = slice(rows, before, count, out.element_bytes());
    if (gathers) {
      rows.out = among_all.out;
      if (owner != self) rows.in = nullptr;
    } else {
      rows.in = among_all.in;
      if (owner != self) rows.out = nullptr;
    }
    out.add(rows);
  }
  return out;
}

SpanCursor::SpanCursor(const SpanList& list, Range range) : list_(&list), at_(range.begin), end_(range.end) {
  RONDE_CHECK(range.begin >= 0 && range.end <= list.total(), "a cursor stays within its list");
  const auto after = std::upper_bound(list.starts_.begin(), list.starts_.end(), at_);
  span_ = static_cast<size_t>(after - list.starts_.begin()) - (after == list.starts_.begin() ? 0 : 1);
}

bool SpanCursor::next(Piece& piece, int64_t limit) {
  if (at_ == end_) return false;
  const Piece& span = list_->spans_[span_];
  const int64_t offset = at_ - list_->starts_[span_];
  const int64_t count = std::min({limit, span.count - offset, end_ - at_});
  piece = slice(span, offset, count, list_->element_bytes_);
  at_ += count;
  if (offset + count == span.count) ++span_;
  return true;
}

}  // namespace ronde::collective
