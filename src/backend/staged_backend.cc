// SPDX-License-Identifier: Apache-2.0
#include "backend/staged_backend.h"

namespace ronde::backend {

bool StagedBackend::supports(const Batch& batch) const {
  return context_->shares_arena(batch.members);
}

std::unique_ptr<collective::Running> StagedBackend::start(const BoundBatch& bound) {
  return collective::start_staged(*context_, bound);
}

}  // namespace ronde::backend
