// SPDX-License-Identifier: Apache-2.0
// Cutter: which of the tensors that are due go together into one batch. Pure.
//
// Idea: tensors of one fusion class in the order in which they became ready, closed before the frame of the decision
// overflows and, if asked, once the batch holds `batch_bytes`. The byte limit closes only between units (calls of the
// user), so that a group stays together; it is a target, not a room to fit into, since a batch is never copied
// together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ronde::coord {

struct Piece {
  uint32_t fusion_class = 0;
  uint32_t unit = 0;      // pieces of one unit follow each other
  int64_t bytes = 0;      // of the tensor
  size_t wire_bytes = 0;  // of its entry in the decision
  bool alone = false;     // a batch of its own
};
struct CutLimits {
  size_t wire_bytes = SIZE_MAX;     // of the entries of one batch
  int64_t batch_bytes = INT64_MAX;  // close a batch once it holds this much
};

// Batches as positions in `pieces`, in the order of their first pieces. Each piece is in exactly one.
std::vector<std::vector<uint32_t>> cut(std::span<const Piece> pieces, const CutLimits& limits);

}  // namespace ronde::coord
