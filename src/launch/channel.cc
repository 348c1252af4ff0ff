// SPDX-License-Identifier: Apache-2.0
#include "launch/channel.h"

#include <array>
#include <cstring>

#include "launch/frames.h"
#include "os/socket.h"

namespace ronde::launch {

void Channel::send(ByteSpan frame) {
  if (closed_) return;
  const auto length = static_cast<uint32_t>(frame.size());
  const auto header = std::as_bytes(std::span(&length, 1));
  outgoing_.insert(outgoing_.end(), header.begin(), header.end());
  outgoing_.insert(outgoing_.end(), frame.begin(), frame.end());
  flush();
}

void Channel::flush() {
  if (closed_ || unsent() == 0) return;
  const ByteSpan rest = ByteSpan(outgoing_).subspan(sent_);
  const auto done = os::write_some(socket_, {&rest, 1});
  if (!done.ok()) {
    closed_ = true;
    return;
  }
  sent_ += *done;
  if (unsent() == 0) {
    outgoing_.clear();
    sent_ = 0;
  }
}

bool Channel::receive() {
  incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<ptrdiff_t>(taken_));
  taken_ = 0;
  std::array<std::byte, 64 * 1024> piece;
  for (;;) {
    const auto got = os::read_some(socket_, piece);
    if (!got.ok()) closed_ = true;
    if (!got.ok() || *got == 0) return !closed_;
    incoming_.insert(incoming_.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(*got));
  }
}

std::optional<Bytes> Channel::next() {
  const ByteSpan rest = ByteSpan(incoming_).subspan(taken_);
  uint32_t length = 0;
  if (rest.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, rest.data(), sizeof length);
  if (length > kMaxFrameBytes) {
    closed_ = true;
    return std::nullopt;
  }
  if (rest.size() - sizeof length < length) return std::nullopt;
  const auto frame = rest.subspan(sizeof length, length);
  taken_ += sizeof length + length;
  return Bytes(frame.begin(), frame.end());
}

}  // namespace ronde::launch
