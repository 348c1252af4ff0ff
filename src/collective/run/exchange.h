// SPDX-License-Identifier: Apache-2.0
// What an alltoall exchanges with each member, as bytes of its one tensor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/run/copy.h"
#include "op/batch.h"

namespace ronde::collective {

// The rows for a member in the input, or from a member in the output.
struct ExchangePart {
  size_t begin = 0;
  size_t bytes = 0;
};

inline size_t row_bytes(const Batch& batch) {
  return static_cast<size_t>(row_count(batch.tensors[0].shape)) * size_of(batch.dtype);
}

// By member, one after another.
inline std::vector<ExchangePart> exchange_parts(std::span<const int64_t> rows, size_t row_bytes) {
  std::vector<ExchangePart> out;
  size_t begin = 0;
  for (const int64_t count : rows) {
    out.push_back({begin, static_cast<size_t>(count) * row_bytes});
    begin += out.back().bytes;
  }
  return out;
}

// The rows that a member has for itself: from its input to its output, a piece of work at a time.
class OwnRows {
 public:
  OwnRows() = default;
  OwnRows(const std::byte* from, std::byte* to, size_t bytes) : from_(from), to_(to), bytes_(bytes) {}

  // False: nothing is left.
  bool copy_piece() {
    constexpr size_t kPieceBytes = 256 * 1024;
    const size_t piece = std::min(kPieceBytes, bytes_ - copied_);
    if (piece == 0) return false;
    copy_bytes(to_ + copied_, from_ + copied_, piece);
    copied_ += piece;
    return true;
  }
  bool done() const { return copied_ == bytes_; }

 private:
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
  size_t bytes_ = 0;
  size_t copied_ = 0;
};

}  // namespace ronde::collective
