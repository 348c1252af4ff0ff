// SPDX-License-Identifier: Apache-2.0
// Sealer: the MACs of one direction of a control link. Pure. Both sides count the frames of each direction.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "member/hello.h"

namespace ronde::control {

constexpr size_t kSealBytes = 16;
using Seal = std::array<std::byte, kSealBytes>;

class Sealer {
 public:
  // `from_initiator`: for the frames that the initiator of the hello sends.
  Sealer(const member::Key& session, bool from_initiator) : session_(session), direction_(from_initiator ? 'i' : 'a') {}
  // The seal of the direction's next frame; each call is one frame.
  Seal next(uint32_t length_word, ByteSpan payload);

 private:
  member::Key session_;
  uint8_t direction_;
  uint64_t sequence_ = 0;
};

}  // namespace ronde::control
