// SPDX-License-Identifier: Apache-2.0
#include "collective/run/ring_data.h"

#include <algorithm>
#include <array>

#include "collective/run/copy.h"

namespace ronde::collective {

RingData::RingData(const BoundBatch& bound, size_t self, int chunks, size_t segment_bytes)
    : bound_(&bound),
      self_(self),
      chunks_(chunks),
      whole_(whole_spans(bound)),
      reduction_(reduction_of(bound.batch)),
      segment_elements_(std::max<int64_t>(1, static_cast<int64_t>(segment_bytes / whole_.element_bytes()))),
      lines_(static_cast<size_t>(chunks)),
      prescaled_(static_cast<size_t>(chunks), 0) {}

const SpanList& RingData::line(int chunk) {
  auto& made = lines_[static_cast<size_t>(chunk)];
  if (!made) {
    made = by_rows() ? rows_of(*bound_, static_cast<size_t>(chunk), self_) : whole_.chunk(chunks_, chunk);
  }
  return *made;
}

int64_t RingData::segments(int chunk) {
  return std::max<int64_t>(1, (line(chunk).total() + segment_elements_ - 1) / segment_elements_);
}

Range RingData::range(int chunk, int64_t segment) {
  const int64_t total = line(chunk).total();
  const int64_t begin = std::min(segment * segment_elements_, total);
  return {begin, std::min(begin + segment_elements_, total)};
}

size_t RingData::bytes(int chunk, int64_t segment) {
  return in_bytes(range(chunk, segment).count());
}

size_t RingData::longest_segment() {
  const int candidates = by_rows() ? chunks_ : 1;  // of even parts the first is the longest
  size_t longest = 0;
  for (int chunk = 0; chunk < candidates; ++chunk) longest = std::max(longest, bytes(chunk, 0));
  return longest;
}

void RingData::to_send(int chunk, int64_t segment, bool received, std::vector<ByteSpan>& pieces) {
  if (!received) prescale(chunk, segment);
  SpanCursor cursor(line(chunk), range(chunk, segment));
  for (Piece piece; cursor.next(piece);) {
    const std::byte* from = received || own_is_moved(chunk) ? piece.out : piece.in;
    pieces.emplace_back(from, in_bytes(piece.count));
  }
}

std::optional<std::span<std::byte>> RingData::contiguous_output(int chunk, int64_t segment) {
  const Range wanted = range(chunk, segment);
  SpanCursor cursor(line(chunk), wanted);
  Piece piece;
  if (!cursor.next(piece) || piece.count != wanted.count()) return std::nullopt;
  return std::span(piece.out, in_bytes(piece.count));
}

void RingData::copy_in(int chunk, int64_t segment, const std::byte* from) {
  SpanCursor cursor(line(chunk), range(chunk, segment));
  for (Piece piece; cursor.next(piece);) {
    copy_bytes(piece.out, from, in_bytes(piece.count));
    from += in_bytes(piece.count);
  }
}

void RingData::reduce_in(int chunk, int64_t segment, std::byte* from, bool received, bool finish) {
  if (!received) prescale(chunk, segment);
  if (scales_on_arrival()) {
    const auto count = static_cast<size_t>(range(chunk, segment).count());
    scale_copy(bound_->batch.dtype, from, from, count, reduction_.pre);
  }
  SpanCursor cursor(line(chunk), range(chunk, segment));
  for (Piece piece; cursor.next(piece);) {
    const std::byte* own = received || own_is_moved(chunk) ? piece.out : piece.in;
    const std::array<const void*, 2> sources{from, own};
    combine(reduction_.combine, bound_->batch.dtype, piece.out, sources, static_cast<size_t>(piece.count),
            finish ? reduction_.post : Scale{});
    from += in_bytes(piece.count);
  }
}

void RingData::keep(int chunk, int64_t segment) {
  SpanCursor cursor(line(chunk), range(chunk, segment));
  for (Piece piece; cursor.next(piece);)
    if (piece.in != nullptr && piece.out != nullptr && piece.in != piece.out)
      copy_bytes(piece.out, piece.in, in_bytes(piece.count));
}

void RingData::prescale(int chunk, int64_t segment) {
  int64_t& ready = prescaled_[static_cast<size_t>(chunk)];
  if (!own_is_moved(chunk) || segment < ready) return;
  ready = segment + 1;
  SpanCursor cursor(line(chunk), range(chunk, segment));
  for (Piece piece; cursor.next(piece);)
    scale_copy(bound_->batch.dtype, piece.out, piece.in, static_cast<size_t>(piece.count), reduction_.pre);
}

}  // namespace ronde::collective
