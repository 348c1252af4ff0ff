// SPDX-License-Identifier: Apache-2.0
// Channel: frames between launcher and agent over a stream socket: u32 length, then the frame. Nothing blocks: what
// cannot be sent now is kept. The end of the other side's process is the end of the stream. Thread: one.
#pragma once

#include <deque>
#include <optional>

#include "base/bytes.h"
#include "os/fd.h"

namespace ronde::launch {

class Channel {
 public:
  explicit Channel(os::Fd socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.get(); }

  void send(ByteSpan frame);
  // As much as the socket takes now.
  void flush();
  size_t unsent() const { return outgoing_.size() - sent_; }

  // Reads what is there; the frames are taken one by one. False: the other side is gone, or sent nonsense.
  bool receive();
  std::optional<Bytes> next();
  bool closed() const { return closed_; }

 private:
  os::Fd socket_;
  Bytes outgoing_;
  size_t sent_ = 0;
  Bytes incoming_;
  size_t taken_ = 0;
  bool closed_ = false;
};

}  // namespace ronde::launch
