// SPDX-License-Identifier: Apache-2.0
#include "backend/ring_backend.h"

namespace ronde::backend {

bool RingBackend::supports(const Batch& batch) const {
  return batch.members.size() >= 2;
}

std::unique_ptr<collective::Running> RingBackend::start(const BoundBatch& bound) {
  return collective::start_ring(context_, bound);
}

}  // namespace ronde::backend
