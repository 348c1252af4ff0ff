// SPDX-License-Identifier: Apache-2.0
// Batches of one member.
#pragma once

#include "backend/backend.h"

namespace ronde::backend {

class SelfBackend final : public Backend {
 public:
  std::string_view name() const override { return "self"; }
  bool supports(const Batch& batch) const override;
  std::unique_ptr<collective::Running> start(const BoundBatch& bound) override;
};

}  // namespace ronde::backend
