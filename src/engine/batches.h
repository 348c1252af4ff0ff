// SPDX-License-Identifier: Apache-2.0
// Batches: those that were decided and are not finished, in the published order. The first runs; a second one beside it
// only where the backend says that it does not share anything with it (other streams of the wire). Thread: the driver.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/clock.h"
#include "coord/member.h"
#include "engine/widened.h"
#include "op/batch.h"

namespace ronde::engine {

class Batches {
 public:
  Batches(std::span<const std::unique_ptr<backend::Backend>> backends, Rank self) : backends_(backends), self_(self) {}

  struct Entry {
    BoundBatch bound;
    Widened widened;
    std::vector<coord::Ticket> tickets;
    backend::Backend* backend = nullptr;
    std::unique_ptr<collective::Running> running;
    Time since{};
  };

  // Error: no backend supports it, no memory.
  Status push(BoundBatch bound, std::vector<coord::Ticket> tickets, Time now);
  // One block of each running batch. `finished` is called for each that is done, after it let go of the memory.
  // True if anything was done. An error is of the batch in front; everything stays until clear().
  Result<bool> advance(const std::function<void(Entry&)>& finished);
  // Gives up all; the memory is let go of. The tickets, for the engine to complete.
  std::vector<coord::Ticket> clear();
  bool empty() const { return queue_.empty(); }
  // When the batch in front was decided; kNever if there is none.
  Time oldest() const { return queue_.empty() ? kNever : queue_.front()->since; }
  const Entry* front() const { return queue_.empty() ? nullptr : queue_.front().get(); }

 private:
  bool may_start(size_t position) const;

  std::span<const std::unique_ptr<backend::Backend>> backends_;
  Rank self_;
  std::deque<std::unique_ptr<Entry>> queue_;
};

}  // namespace ronde::engine
