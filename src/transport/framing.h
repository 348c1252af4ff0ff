// SPDX-License-Identifier: Apache-2.0
// Framing: frames over a stream of bytes; the part of a Link that does not know what carries the bytes.
//
// A frame is a header of 24 bytes (u32 epoch, u32 step, u64 batch, u64 length), then the payload. What is sent is
// gathered from the posts, several at once; what comes is read straight to where it was posted, after its header fitted
// the post. Nothing is read that nobody has posted: the sender then waits. Thread: one.
#pragma once

#include <array>
#include <deque>
#include <span>
#include <vector>

#include "transport/link.h"

namespace ronde::transport {

// Bytes to and from a peer, without blocking. 0: not now. An error: the stream is over, Code::PeerLost if the peer
// ended it.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual Result<size_t> read(std::span<std::byte> into) = 0;
  virtual Result<size_t> write(std::span<const ByteSpan> pieces) = 0;
};

constexpr size_t kHeaderBytes = 24;
using FrameHeader = std::array<std::byte, kHeaderBytes>;
FrameHeader make_header(const FrameTag& tag, uint64_t length);

class Framing {
 public:
  void post_send(const FrameTag& tag, std::span<const ByteSpan> pieces);
  void post_recv(const FrameTag& tag, std::span<std::byte> into);

  // Moves until the stream gives and takes nothing more, or nothing is posted; both directions in turn. An error is
  // final.
  Status advance(ByteStream& stream);
  // Lets go of all that is posted.
  void clear();

  uint64_t sends_done() const { return sends_done_; }
  uint64_t recvs_done() const { return recvs_done_; }
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Send {
    FrameHeader header;
    std::vector<ByteSpan> pieces;
    size_t bytes;  // of header and payload
  };
  struct Recv {
    FrameTag tag;
    std::span<std::byte> into;
  };
  // One bounded step; how many bytes it moved.
  Result<size_t> send_some(ByteStream& stream);
  Result<size_t> recv_some(ByteStream& stream);
  void gather();
  Status check_header() const;

  std::deque<Send> sends_;
  std::deque<Recv> recvs_;
  size_t front_sent_ = 0;           // bytes of the first send that are gone
  std::vector<ByteSpan> gathered_;  // kept for its memory
  FrameHeader header_{};            // of the frame that is coming in
  size_t front_read_ = 0;           // bytes of it, header included, that are here
  uint64_t sends_done_ = 0;
  uint64_t recvs_done_ = 0;
  uint64_t bytes_sent_ = 0;
};

}  // namespace ronde::transport
