// SPDX-License-Identifier: Apache-2.0
// Arena: the shared memory of the ranks of one host, as the staged collectives see it. Each rank owns `slots` buffers
// of `slot_bytes`, and three progress words, each in a cache line of its own:
//
//   packed   this rank's slot holds its part of that block
//   reduced  this rank's share of that block is summed and can be read
//   done     this rank has read everything that it needs of that block
//
// A word holds a Mark: (batch number, block of the batch), which only grows, because every rank runs the batches that
// concern it in the one published order. A peer waits for `word >= mark`. Block b of any batch uses slot b % slots; a
// slot is written again when all readers of its last use have `done` that mark. So slots belong to ranks, not to
// process sets.
//
// Words are stored with seq_cst: the sleeping word of a peer is read after them (control/board.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace ronde::transport {

using Mark = uint64_t;
constexpr int kBlockBits = 26;
constexpr Mark mark_of(uint64_t batch, uint64_t block) {
  return (batch << kBlockBits) | (block + 1);
}
constexpr uint64_t kMaxBlocks = (uint64_t{1} << kBlockBits) - 2;

struct alignas(64) ProgressWord {
  std::atomic<Mark> mark{0};
};

struct ArenaLayout {
  int ranks = 1;  // of this host
  int slots = 4;
  size_t slot_bytes = 256 * 1024;  // a multiple of 4096

  size_t words_bytes() const;  // rounded up to a page
  size_t bytes() const { return words_bytes() + static_cast<size_t>(ranks) * slots * slot_bytes; }
};

// A view; the memory belongs to a Region that outlives it and starts zeroed. Thread: the one that drives the engine.
class Arena {
 public:
  Arena(std::byte* base, const ArenaLayout& layout) : base_(base), layout_(layout) {}

  const ArenaLayout& layout() const { return layout_; }
  ProgressWord& packed(int local_rank) { return word(local_rank, 0); }
  ProgressWord& reduced(int local_rank) { return word(local_rank, 1); }
  ProgressWord& done(int local_rank) { return word(local_rank, 2); }
  std::byte* slot(int local_rank, uint64_t block) {
    const auto index = static_cast<size_t>(local_rank) * layout_.slots + block % layout_.slots;
    return base_ + layout_.words_bytes() + index * layout_.slot_bytes;
  }

 private:
  ProgressWord& word(int local_rank, int which) {
    return reinterpret_cast<ProgressWord*>(base_)[local_rank * 3 + which];
  }
  std::byte* base_;
  ArenaLayout layout_;
};

inline size_t ArenaLayout::words_bytes() const {
  const size_t raw = static_cast<size_t>(ranks) * 3 * sizeof(ProgressWord);
  return (raw + 4095) / 4096 * 4096;
}

// Rings the bell of each of these local ranks that sleeps. Called after a progress word was stored.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake(std::span<const int> local_ranks) = 0;
};

}  // namespace ronde::transport
