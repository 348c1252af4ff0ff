// SPDX-License-Identifier: Apache-2.0
// FrameStream: frames [u32 length][...] over a non-blocking socket whose peer is proven. It reads the frame that it
// returns and no byte more, so that the socket is readable as long as something is unread, and so that descriptors can
// follow a frame. Thread: one.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/clock.h"
#include "os/socket.h"

namespace ronde::member {

// A frame ready to be written, its length included. Shared, because one frame often goes to all ranks.
using WireFrame = std::shared_ptr<const Bytes>;
WireFrame make_wire_frame(ByteSpan payload);

class FrameStream {
 public:
  FrameStream(os::Fd fd, size_t max_frame_bytes) : fd_(std::move(fd)), max_frame_bytes_(max_frame_bytes) {}

  // The next frame without its length, or nothing now. An error is final.
  Result<std::optional<Bytes>> next();
  // The same, waiting. Timeout: the deadline.
  Result<Bytes> next_by(Time deadline);

  void queue(WireFrame frame);
  // Writes what is queued, until the socket takes no more.
  Status flush();
  size_t queued_bytes() const { return queued_bytes_; }

  const os::Fd& fd() const { return fd_; }

 private:
  // True: `into` is full.
  Result<bool> fill(std::span<std::byte> into, size_t& done);

  os::Fd fd_;
  size_t max_frame_bytes_;
  std::array<std::byte, sizeof(uint32_t)> head_{};
  size_t head_done_ = 0;
  Bytes body_;
  size_t body_done_ = 0;
  std::deque<WireFrame> queue_;
  size_t written_ = 0;  // of the first in the queue
  size_t queued_bytes_ = 0;
};

}  // namespace ronde::member
