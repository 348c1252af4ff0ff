// SPDX-License-Identifier: Apache-2.0
// Ring: frames from one writer to one reader through memory that both have mapped. Zeroed memory is an empty ring.
//
// Idea: a circle of bytes and two counters that only grow. The writer copies a frame in and then moves `written` past
// it; the reader copies it out and moves `read`. Each side keeps its own counter to itself as well and believes only
// that one, so that whatever the other side writes is at worst an error. In the ring: u32 length, the frame; both may
// wrap around the end.
//
// Waking: all stores are seq_cst, see control/board.h. A writer that finds no room sets `writer_waits` and looks once
// more; a reader that has made room takes the word back and wakes the writer.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/status.h"

namespace ronde::control {

constexpr size_t kRingBytes = 256 * 1024;

struct RingMemory {
  alignas(64) std::atomic<uint64_t> written;  // bytes ever; the writer's
  alignas(64) std::atomic<uint64_t> read;     // bytes ever; the reader's
  alignas(64) std::atomic<uint32_t> writer_waits;
  alignas(64) std::byte data[kRingBytes];
};

// Thread: one. Lifetime: the memory outlives it.
class RingWriter {
 public:
  explicit RingWriter(RingMemory* memory) : memory_(memory), written_(memory->written.load()) {}
  // False: no room now.
  Result<bool> put(ByteSpan frame);

 private:
  Result<bool> has_room(size_t bytes) const;
  void copy_in(ByteSpan bytes);
  RingMemory* memory_;
  uint64_t written_;
};

class RingReader {
 public:
  explicit RingReader(RingMemory* memory) : memory_(memory), read_(memory->read.load()) {}
  // The next frame, or nothing. Afterwards take_writer_waits() says whether the writer is to be woken.
  Result<std::optional<Bytes>> take();
  bool take_writer_waits();

 private:
  void copy_out(uint64_t from, std::span<std::byte> into) const;
  RingMemory* memory_;
  uint64_t read_;
};

}  // namespace ronde::control
