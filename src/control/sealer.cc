// SPDX-License-Identifier: Apache-2.0
#include "control/sealer.h"

#include "member/mac.h"

namespace ronde::control {

Seal Sealer::next(uint32_t length_word, ByteSpan payload) {
  std::array<std::byte, 1 + sizeof sequence_ + sizeof length_word> head;
  head[0] = std::byte{direction_};
  std::memcpy(head.data() + 1, &sequence_, sizeof sequence_);
  std::memcpy(head.data() + 1 + sizeof sequence_, &length_word, sizeof length_word);
  ++sequence_;
  Seal seal;
  const ByteSpan pieces[] = {head, payload};
  member::make_mac(session_, pieces, seal);
  return seal;
}

}  // namespace ronde::control
