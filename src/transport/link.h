// SPDX-License-Identifier: Apache-2.0
// Link: the narrow waist between collectives and the wire. An ordered, two-way stream of frames to one peer.
//
// What is posted is a frame: a tag and a payload. The receiver posts what it expects next, tag and length; a frame that
// does not fit is an error of the protocol and closes the link. Frames go out and come in in the order posted.
// Nothing blocks. advance() does all I/O that is possible now. Memory that was posted stays valid until the counter
// passed it or the link is closed. Thread: the one that drives the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/status.h"

namespace ronde::transport {

struct FrameTag {
  uint32_t epoch = 0;
  uint32_t step = 0;   // step of the schedule
  uint64_t batch = 0;  // number of the batch
  bool operator==(const FrameTag&) const = default;
};

class Link {
 public:
  virtual ~Link() = default;

  // Several posts may be outstanding. The payload is the concatenation of the pieces; empty payloads are allowed.
  virtual void post_send(const FrameTag& tag, std::span<const ByteSpan> pieces) = 0;
  virtual void post_recv(const FrameTag& tag, std::span<std::byte> into) = 0;

  // How many of the posted sends and receives are finished: a send, when its bytes were handed to the kernel.
  virtual uint64_t sends_done() const = 0;
  virtual uint64_t recvs_done() const = 0;

  // Sends and receives until it would block. An error is final and says who the peer is.
  virtual Status advance() = 0;
  // Every later advance() returns `reason`. Posted memory is let go of.
  virtual void close(const Status& reason) = 0;
};

// Gives the link to a rank on one of its streams; makes it at first use. The link belongs to the table.
class LinkTable {
 public:
  virtual ~LinkTable() = default;
  virtual Link& link(int32_t peer, int stream) = 0;
};

}  // namespace ronde::transport
