// SPDX-License-Identifier: Apache-2.0
#include "coord/cutter.h"

#include <unordered_map>

namespace ronde::coord {
namespace {

// The batch of a fusion class that still takes pieces.
struct Open {
  size_t batch = 0;  // position in the result
  uint32_t last_unit = 0;
  int64_t bytes = 0;
  size_t wire_bytes = 0;
};

bool takes(const Open& open, const Piece& piece, const CutLimits& limits) {
  if (open.wire_bytes + piece.wire_bytes > limits.wire_bytes) return false;
  return open.bytes < limits.batch_bytes || open.last_unit == piece.unit;
}

}  // namespace

std::vector<std::vector<uint32_t>> cut(std::span<const Piece> pieces, const CutLimits& limits) {
  std::vector<std::vector<uint32_t>> out;
  std::unordered_map<uint32_t, Open> open_of_class;
  for (uint32_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (piece.alone) {
      out.push_back({i});
      continue;
    }
    auto [it, is_new] = open_of_class.try_emplace(piece.fusion_class);
    Open& open = it->second;
    if (is_new || !takes(open, piece, limits)) {
      open = Open{.batch = out.size()};
      out.emplace_back();
    }
    out[open.batch].push_back(i);
    open.last_unit = piece.unit;
    open.bytes += piece.bytes;
    open.wire_bytes += piece.wire_bytes;
  }
  return out;
}

}  // namespace ronde::coord
