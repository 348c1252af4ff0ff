// SPDX-License-Identifier: Apache-2.0
#include "member/frame_stream.h"

#include "os/event_set.h"

namespace ronde::member {

WireFrame make_wire_frame(ByteSpan payload) {
  Writer writer;
  writer.put(static_cast<uint32_t>(payload.size())).put_bytes(payload);
  return std::make_shared<const Bytes>(writer.take());
}

Result<bool> FrameStream::fill(std::span<std::byte> into, size_t& done) {
  RONDE_ASSIGN(const size_t got, os::read_some(fd_, into.subspan(done)));
  done += got;
  return done == into.size();
}

Result<std::optional<Bytes>> FrameStream::next() {
  if (head_done_ < head_.size()) {
    RONDE_ASSIGN(const bool full, fill(head_, head_done_));
    if (!full) return std::optional<Bytes>();
    uint32_t length = 0;
    std::memcpy(&length, head_.data(), sizeof length);
    if (length > max_frame_bytes_) {
      head_done_ = 0;
      return Status(Code::Internal,
                    cat("sent a frame of ", length, " bytes; at most ", max_frame_bytes_, " are allowed"));
    }
    body_.resize(length);
    body_done_ = 0;
  }
  if (body_done_ < body_.size()) {
    RONDE_ASSIGN(const bool full, fill(body_, body_done_));
    if (!full) return std::optional<Bytes>();
  }
  head_done_ = 0;
  return std::optional(std::exchange(body_, {}));
}

Result<Bytes> FrameStream::next_by(Time deadline) {
  for (;;) {
    RONDE_ASSIGN(auto frame, next());
    if (frame.has_value()) return std::move(*frame);
    const int raw = fd_.get();
    if (!os::sleep_until_readable({&raw, 1}, deadline)) return Status(Code::Timeout, "did not answer in time");
  }
}

void FrameStream::queue(WireFrame frame) {
  queued_bytes_ += frame->size();
  queue_.push_back(std::move(frame));
}

Status FrameStream::flush() {
  while (!queue_.empty()) {
    const ByteSpan rest = ByteSpan(*queue_.front()).subspan(written_);
    RONDE_ASSIGN(const size_t wrote, os::write_some(fd_, {&rest, 1}));
    written_ += wrote;
    queued_bytes_ -= wrote;
    if (wrote < rest.size()) return {};
    queue_.pop_front();
    written_ = 0;
  }
  return {};
}

}  // namespace ronde::member
