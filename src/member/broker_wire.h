// SPDX-License-Identifier: Apache-2.0
// The two frames of the broker; broker.h describes them.
#pragma once

#include "base/bytes.h"
#include "member/broker.h"
#include "member/frame_stream.h"

namespace ronde::member::broker_wire {

constexpr size_t kMaxTextBytes = 4096;
constexpr size_t kMaxFrameBytes = kMaxTextBytes + 64;
constexpr int32_t kMaxLocalSize = 4096;

WireFrame encode(const HostMemoryRequest& request);
Result<HostMemoryRequest> decode_request(ByteSpan frame);

WireFrame encode_answer(const Status& status);
// What the broker said; or, with another code, that it said nothing sensible.
Status decode_answer(ByteSpan frame);

// Descriptors that follow a good answer: board, arena, bells.
constexpr size_t fd_count(int32_t local_size) {
  return 2 + 2 * static_cast<size_t>(local_size);
}

}  // namespace ronde::member::broker_wire
