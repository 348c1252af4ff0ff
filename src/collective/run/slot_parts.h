// SPDX-License-Identifier: Apache-2.0
// A slot divided evenly among the members of a batch, for what each member has for each: part i is for member i.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "transport/arena.h"

namespace ronde::collective {

class SlotParts {
 public:
  // Parts begin at cache lines where there is room, and hold whole elements.
  SlotParts(const transport::ArenaLayout& layout, size_t members, size_t element_bytes) {
    const size_t even = layout.slot_bytes / members;
    const size_t unit = std::max(even >= kLine ? kLine : 1, element_bytes);
    bytes_ = even / unit * unit;
    RONDE_CHECK(bytes_ > 0, "a slot has room for an element of each member");
  }

  size_t bytes() const { return bytes_; }  // of a part
  size_t begin(size_t member) const { return member * bytes_; }
  // So many blocks of one part each hold `bytes`.
  uint64_t blocks(uint64_t bytes) const { return (bytes + bytes_ - 1) / bytes_; }

 private:
  static constexpr size_t kLine = 64;
  size_t bytes_ = 0;
};

}  // namespace ronde::collective
