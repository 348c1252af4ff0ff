// SPDX-License-Identifier: Apache-2.0
// Batches over links, wherever their members are.
#pragma once

#include "backend/backend.h"
#include "collective/run/ring.h"

namespace ronde::backend {

class RingBackend final : public Backend {
 public:
  // `links` outlives the backend.
  RingBackend(transport::LinkTable& links, const collective::RingOptions& options) : context_(links, options) {}

  std::string_view name() const override { return "ring"; }
  bool has_streams() const override { return true; }
  bool supports(const Batch& batch) const override;
  std::unique_ptr<collective::Running> start(const BoundBatch& bound) override;

 private:
  collective::RingContext context_;
};

}  // namespace ronde::backend
