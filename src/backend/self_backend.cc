// SPDX-License-Identifier: Apache-2.0
#include "backend/self_backend.h"

#include "collective/run/alone.h"

namespace ronde::backend {

bool SelfBackend::supports(const Batch& batch) const {
  return batch.members.size() == 1;
}

std::unique_ptr<collective::Running> SelfBackend::start(const BoundBatch& bound) {
  return collective::start_alone(bound);
}

}  // namespace ronde::backend
