// SPDX-License-Identifier: Apache-2.0
// Carrier: ordered frames of control between a rank and the coordinator. Two carriers pass one contract suite: rings on
// the board (same host) and an authenticated TCP link. A full carrier says so and the frame stays with the caller.
// Thread: the one that drives the engine.
#pragma once

#include <cstddef>
#include <optional>

#include "base/bytes.h"
#include "base/status.h"

namespace ronde::control {

constexpr size_t kMaxFrameBytes = 64 * 1024;

class Carrier {
 public:
  virtual ~Carrier() = default;
  // False: no room now; room comes with a wake-up. Wakes the other side if it sleeps.
  virtual Result<bool> try_send(ByteSpan frame) = 0;
  // The next frame, or nothing now. An error is final and says what became of the peer.
  virtual Result<std::optional<Bytes>> try_recv() = 0;

  // Tells the peer that this process is at work, where nothing else would: between hosts. One beat at most is on its
  // way to a peer that says nothing, so a stopped peer's buffers do not fill.
  virtual void beat() {}
  // True if anything came from the peer since the last call. Always false on one host: the board has the beats there.
  virtual bool take_sign_of_life() { return false; }
};

}  // namespace ronde::control
