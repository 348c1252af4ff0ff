// SPDX-License-Identifier: Apache-2.0
#include "collective/run/blocks.h"

#include <algorithm>

namespace ronde::collective {
namespace {

constexpr int64_t kLineBytes = 64;
// Up to here all members together read less than a second round of waiting costs.
constexpr int64_t kDirectBytes = 16 * 1024;
// A batch is cut into at least so many blocks, so that one member packs while another reduces...
constexpr int64_t kLeastBlocks = 4;
// ...unless they would become so small that waiting for each costs more than the overlap gains.
constexpr int64_t kLeastBlockBytes = 32 * 1024;

int64_t divide_up(int64_t a, int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}
int64_t round_up(int64_t a, int64_t multiple) {
  return divide_up(a, multiple) * multiple;
}

}  // namespace

Range BlockPlan::block(uint64_t index) const {
  const int64_t begin = static_cast<int64_t>(index) * block_elements;
  return {begin, std::min(begin + block_elements, elements)};
}

BlockPlan plan_blocks(int64_t elements, size_t element_bytes, size_t members, const transport::ArenaLayout& layout) {
  const auto slot_bytes = static_cast<int64_t>(layout.slot_bytes);
  const auto element = static_cast<int64_t>(element_bytes);
  const int64_t bytes = elements * element;
  const int64_t wanted = std::max(round_up(divide_up(bytes, kLeastBlocks), kLineBytes), kLeastBlockBytes);
  BlockPlan plan{.elements = elements, .block_elements = std::min(wanted, slot_bytes) / element};
  plan.blocks = static_cast<uint64_t>(divide_up(elements, plan.block_elements));
  plan.direct = bytes <= slot_bytes && bytes <= kDirectBytes / static_cast<int64_t>(members) && plan.blocks <= 1;
  RONDE_CHECK(plan.blocks <= transport::kMaxBlocks, "a batch has more blocks than a mark can count");
  return plan;
}

Range share_of(Range block, size_t element_bytes, size_t members, size_t index) {
  const int64_t line = kLineBytes / static_cast<int64_t>(element_bytes);
  const Range lines = part_of(divide_up(block.count(), line), static_cast<int>(members), static_cast<int>(index));
  return {std::min(block.begin + lines.begin * line, block.end), std::min(block.begin + lines.end * line, block.end)};
}

}  // namespace ronde::collective
