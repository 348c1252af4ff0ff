// SPDX-License-Identifier: Apache-2.0
// Backend: who can run a batch. One virtual call for all ops; the engine takes the first backend of its table that
// supports it.
#pragma once

#include <memory>
#include <string_view>

#include "collective/run/running.h"
#include "op/batch.h"

namespace ronde::backend {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // True: two batches whose numbers differ modulo 2 share nothing and may run at the same time.
  virtual bool has_streams() const { return false; }
  // Decided from the batch alone, equally on every member.
  virtual bool supports(const Batch& batch) const = 0;
  // `bound` outlives the result.
  virtual std::unique_ptr<collective::Running> start(const BoundBatch& bound) = 0;
};

}  // namespace ronde::backend
