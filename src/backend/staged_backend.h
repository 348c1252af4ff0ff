// SPDX-License-Identifier: Apache-2.0
// Batches whose members share the memory of one host.
#pragma once

#include "backend/backend.h"
#include "collective/run/staged.h"

namespace ronde::backend {

class StagedBackend final : public Backend {
 public:
  // `context` outlives the backend.
  explicit StagedBackend(collective::StagedContext& context) : context_(&context) {}

  std::string_view name() const override { return "staged"; }
  bool supports(const Batch& batch) const override;
  std::unique_ptr<collective::Running> start(const BoundBatch& bound) override;

 private:
  collective::StagedContext* context_;
};

}  // namespace ronde::backend
