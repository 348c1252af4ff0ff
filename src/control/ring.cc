// SPDX-License-Identifier: Apache-2.0
#include "control/ring.h"

#include <algorithm>

#include "control/carrier.h"

namespace ronde::control {
namespace {

constexpr size_t kLengthBytes = sizeof(uint32_t);
static_assert(kMaxFrameBytes + kLengthBytes <= kRingBytes, "every frame fits into an empty ring");

Status broken(std::string_view what, uint64_t value) {
  return Status(Code::Internal, cat("the ring of control frames in shared memory is damaged: ", what, " is ", value,
                                    ": a process of this host wrote where it must not"));
}

}  // namespace

Result<bool> RingWriter::has_room(size_t bytes) const {
  const uint64_t used = written_ - memory_->read.load(std::memory_order_seq_cst);
  if (used > kRingBytes) return broken("the number of bytes in it", used);
  return bytes <= kRingBytes - used;
}

void RingWriter::copy_in(ByteSpan bytes) {
  const size_t at = written_ % kRingBytes;
  const size_t first = std::min(bytes.size(), kRingBytes - at);
  std::copy_n(bytes.begin(), first, memory_->data + at);
  std::copy(bytes.begin() + static_cast<ptrdiff_t>(first), bytes.end(), memory_->data);
  written_ += bytes.size();
}

Result<bool> RingWriter::put(ByteSpan frame) {
  RONDE_CHECK(frame.size() <= kMaxFrameBytes, "a control frame is at most kMaxFrameBytes");
  RONDE_ASSIGN(bool room, has_room(kLengthBytes + frame.size()));
  if (!room) {
    memory_->writer_waits.store(1, std::memory_order_seq_cst);
    RONDE_ASSIGN(room, has_room(kLengthBytes + frame.size()));
    if (!room) return false;
    memory_->writer_waits.store(0, std::memory_order_seq_cst);
  }
  const auto length = static_cast<uint32_t>(frame.size());
  copy_in(std::as_bytes(std::span(&length, 1)));
  copy_in(frame);
  memory_->written.store(written_, std::memory_order_seq_cst);
  return true;
}

void RingReader::copy_out(uint64_t from, std::span<std::byte> into) const {
  const size_t at = from % kRingBytes;
  const size_t first = std::min(into.size(), kRingBytes - at);
  std::copy_n(memory_->data + at, first, into.begin());
  std::copy_n(memory_->data, into.size() - first, into.begin() + static_cast<ptrdiff_t>(first));
}

Result<std::optional<Bytes>> RingReader::take() {
  const uint64_t there = memory_->written.load(std::memory_order_seq_cst) - read_;
  if (there == 0) return std::optional<Bytes>();
  if (there > kRingBytes || there < kLengthBytes) return broken("the number of bytes in it", there);
  uint32_t length = 0;
  copy_out(read_, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxFrameBytes || length > there - kLengthBytes) return broken("the length of a frame", length);
  Bytes frame(length);
  copy_out(read_ + kLengthBytes, frame);
  read_ += kLengthBytes + length;
  memory_->read.store(read_, std::memory_order_seq_cst);
  return std::optional(std::move(frame));
}

bool RingReader::take_writer_waits() {
  return memory_->writer_waits.load(std::memory_order_seq_cst) != 0 &&
         memory_->writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace ronde::control
