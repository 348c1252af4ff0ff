// SPDX-License-Identifier: Apache-2.0
#include "transport/framing.h"

#include <algorithm>

namespace ronde::transport {
namespace {

// A step of one direction: enough to make a system call worth while, little enough for the other direction to get its
// turn.
constexpr size_t kStepBytes = 512 * 1024;
constexpr size_t kStepPieces = 64;

std::string describe(const FrameTag& tag, uint64_t length) {
  return cat("epoch ", tag.epoch, ", batch ", tag.batch, ", step ", tag.step, ", ", length, " bytes");
}

}  // namespace

FrameHeader make_header(const FrameTag& tag, uint64_t length) {
  Writer writer;
  writer.put(tag.epoch).put(tag.step).put(tag.batch).put(length);
  FrameHeader out;
  std::copy(writer.bytes().begin(), writer.bytes().end(), out.begin());
  return out;
}

void Framing::post_send(const FrameTag& tag, std::span<const ByteSpan> pieces) {
  size_t length = 0;
  for (const ByteSpan piece : pieces) length += piece.size();
  sends_.push_back({make_header(tag, length), {pieces.begin(), pieces.end()}, kHeaderBytes + length});
}

void Framing::post_recv(const FrameTag& tag, std::span<std::byte> into) {
  recvs_.push_back({tag, into});
}

void Framing::clear() {
  sends_.clear();
  recvs_.clear();
}

Status Framing::advance(ByteStream& stream) {
  for (;;) {
    RONDE_ASSIGN(const size_t sent, send_some(stream));
    RONDE_ASSIGN(const size_t read, recv_some(stream));
    if (sent == 0 && read == 0) return {};
  }
}

// The bytes of the next sends, from where the first one stands.
void Framing::gather() {
  gathered_.clear();
  size_t skip = front_sent_;
  size_t bytes = 0;
  const auto add = [&](ByteSpan piece) {
    const size_t skipped = std::min(skip, piece.size());
    skip -= skipped;
    piece = piece.subspan(skipped);
    piece = piece.first(std::min(piece.size(), kStepBytes - bytes));
    bytes += piece.size();
    if (!piece.empty()) gathered_.push_back(piece);
  };
  for (const Send& send : sends_) {
    add(send.header);
    for (const ByteSpan piece : send.pieces) {
      if (bytes == kStepBytes || gathered_.size() >= kStepPieces) return;
      add(piece);
    }
    if (bytes == kStepBytes || gathered_.size() >= kStepPieces) return;
  }
}

Result<size_t> Framing::send_some(ByteStream& stream) {
  if (sends_.empty()) return size_t{0};
  gather();
  RONDE_ASSIGN(const size_t sent, stream.write(gathered_));
  bytes_sent_ += sent;
  front_sent_ += sent;
  while (!sends_.empty() && front_sent_ >= sends_.front().bytes) {
    front_sent_ -= sends_.front().bytes;
    sends_.pop_front();
    ++sends_done_;
  }
  return sent;
}

Status Framing::check_header() const {
  Reader reader(header_);
  FrameTag tag;
  tag.epoch = reader.get<uint32_t>();
  tag.step = reader.get<uint32_t>();
  tag.batch = reader.get<uint64_t>();
  const auto length = reader.get<uint64_t>();
  const Recv& expected = recvs_.front();
  if (tag == expected.tag && length == expected.into.size()) return {};
  return Status(Code::Internal,
                cat("expected a frame of ", describe(expected.tag, expected.into.size()), ", got one of ",
                    describe(tag, length), "; the two ranks do not run the same plan"));
}

Result<size_t> Framing::recv_some(ByteStream& stream) {
  if (recvs_.empty()) return size_t{0};
  size_t moved = 0;
  if (front_read_ < kHeaderBytes) {
    RONDE_ASSIGN(moved, stream.read(std::span(header_).subspan(front_read_)));
    front_read_ += moved;
    if (front_read_ < kHeaderBytes) return moved;
    RONDE_TRY(check_header());
  }
  const std::span<std::byte> rest = recvs_.front().into.subspan(front_read_ - kHeaderBytes);
  if (!rest.empty()) {
    RONDE_ASSIGN(const size_t got, stream.read(rest.first(std::min(rest.size(), kStepBytes))));
    front_read_ += got;
    moved += got;
    if (got < rest.size()) return moved;
  }
  recvs_.pop_front();
  front_read_ = 0;
  ++recvs_done_;
  return moved;
}

}  // namespace ronde::transport
