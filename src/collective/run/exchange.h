// SPDX-License-Identifier: Apache-2.0
// What an alltoall exchanges with each member, as bytes of its one tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

// What is copied in one piece of work.
constexpr size_t kOwnPieceBytes = 256 * 1024;

}  // namespace ronde::collective
