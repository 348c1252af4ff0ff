// SPDX-License-Identifier: Apache-2.0
// How a staged batch is cut: pure decisions, equal on every member because they depend only on what all members know.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective/run/cursor.h"
#include "transport/arena.h"

namespace ronde::collective {

struct BlockPlan {
  int64_t elements = 0;        // of the whole line
  int64_t block_elements = 1;  // of each block but the last
  uint64_t blocks = 0;
  // So small that each member combines everything itself, which saves the second wait.
  bool direct = false;

  Range block(uint64_t index) const;
};

BlockPlan plan_blocks(int64_t elements, size_t element_bytes, size_t members, const transport::ArenaLayout& layout);

// What member `index` reduces of a block; begins and ends at cache lines of the slot.
Range share_of(Range block, size_t element_bytes, size_t members, size_t index);

}  // namespace ronde::collective
