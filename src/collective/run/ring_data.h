// SPDX-License-Identifier: Apache-2.0
// RingData: the memory side of a ring batch. Chunk i of the batch is the i-th chunks of its tensors (of an allgather or
// a reducescatter: member i's rows); a chunk is cut into segments, each carried by one frame. Even an empty chunk has
// one segment, so that its frame can be waited for.
//
// The input is copied nowhere in advance: until a chunk is received the member's own content is read from the input;
// only a prescale moves it to the output, a segment at a time, before its first use. Of a reducescatter there is an
// output for the own rows alone: other rows are sent as they are, and prescaled by the receiver.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "collective/run/cursor.h"

namespace ronde::collective {

class RingData {
 public:
  // `bound` outlives it.
  RingData(const BoundBatch& bound, size_t self, int chunks, size_t segment_bytes);

  int64_t segments(int chunk);
  size_t bytes(int chunk, int64_t segment);
  size_t longest_segment();

  // The memory to send, appended to `pieces`. `received`: the chunk was received before, else it is the own content.
  void to_send(int chunk, int64_t segment, bool received, std::vector<ByteSpan>& pieces);
  // Where the segment lies in the outputs, if it is one piece there.
  std::optional<std::span<std::byte>> contiguous_output(int chunk, int64_t segment);

  void copy_in(int chunk, int64_t segment, const std::byte* from);
  // finish: the result is complete and is post-scaled. `from` may be written.
  void reduce_in(int chunk, int64_t segment, std::byte* from, bool received, bool finish);
  // Input -> output, for a chunk that is never received.
  void keep(int chunk, int64_t segment);

 private:
  const SpanList& line(int chunk);
  Range range(int chunk, int64_t segment);
  size_t in_bytes(int64_t elements) const { return static_cast<size_t>(elements) * whole_.element_bytes(); }
  void prescale(int chunk, int64_t segment);
  // Chunk i are the rows of member i, not an even part.
  bool by_rows() const { return row(bound_->batch.op).works_on_rows(); }
  bool scales_on_arrival() const { return row(bound_->batch.op).output == Output::OwnRows; }
  // Own content lies in the output, not in the input.
  bool own_is_moved(int chunk) const {
    return !reduction_.pre.is_identity() && (!scales_on_arrival() || static_cast<size_t>(chunk) == self_);
  }

  const BoundBatch* bound_;
  size_t self_;
  int chunks_;
  SpanList whole_;
  Reduction reduction_;
  int64_t segment_elements_;
  std::vector<std::optional<SpanList>> lines_;  // by chunk, made when first used
  std::vector<int64_t> prescaled_;              // by chunk: segments moved to the output so far
};

}  // namespace ronde::collective
