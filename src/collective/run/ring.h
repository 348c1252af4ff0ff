// SPDX-License-Identifier: Apache-2.0
// Batches over Links: the ring algorithms of collective/plan, run by the executor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collective/run/running.h"
#include "op/batch.h"
#include "transport/link.h"

namespace ronde::collective {

struct RingOptions {
  Rank self = 0;
  uint32_t epoch = 0;
  size_t segment_bytes = 256 * 1024;  // what one frame carries at most; tests make it tiny
};

// What one rank keeps from batch to batch. One per engine and epoch. Thread: the one that drives the engine.
class RingContext {
 public:
  // `links` outlives the context.
  RingContext(transport::LinkTable& links, const RingOptions& options) : links_(&links), options_(options) {}

  transport::LinkTable& links() { return *links_; }
  const RingOptions& options() const { return options_; }
  // Memory for what arrives on a stream. Batches of one stream run one after another, so each has it alone.
  std::vector<std::byte>& scratch(int stream) { return scratch_[static_cast<size_t>(stream)]; }

 private:
  transport::LinkTable* links_;
  RingOptions options_;
  std::array<std::vector<std::byte>, 2> scratch_;
};

// Two links per pair of neighbours serve alternate batches.
inline int stream_of(const Batch& batch) {
  return static_cast<int>(batch.number % 2);
}

// At least two members. Batches of the same stream are started in ascending order of their numbers, each after the one
// before it is done. A batch that fails, or is destroyed before it is done, closes the links that it uses. `bound` and
// `context` outlive the result.
std::unique_ptr<Running> start_ring(RingContext& context, const BoundBatch& bound);

}  // namespace ronde::collective
