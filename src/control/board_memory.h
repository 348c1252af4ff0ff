// SPDX-License-Identifier: Apache-2.0
// The board's layout in memory; board.h says what the words mean. Only board.cc looks into it.
#pragma once

#include "control/board.h"
#include "control/ring.h"

namespace ronde::control {

struct CauseMemory {
  std::atomic<uint32_t> taken;  // 1 once the seat's owner writes its one cause
  uint32_t code;
  uint32_t text_bytes;
  char text[kMaxCauseBytes];
};

struct SeatMemory {
  alignas(64) std::atomic<uint32_t> sleeping;
  alignas(64) std::atomic<uint32_t> in_wait;
  alignas(64) std::atomic<int64_t> beat;
  RingMemory up;
  RingMemory down;
  alignas(64) CauseMemory cause;
};

// The seats follow: those of the ranks, then the agent's, of which only the cause is ever touched, so its rings take no
// pages.
struct alignas(64) BoardMemory {
  std::atomic<uint32_t> abort;

  static size_t bytes(int local_size) {
    return sizeof(BoardMemory) + static_cast<size_t>(local_size + 1) * sizeof(SeatMemory);
  }
  SeatMemory& seat(int index) { return reinterpret_cast<SeatMemory*>(this + 1)[index]; }
};

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace ronde::control
