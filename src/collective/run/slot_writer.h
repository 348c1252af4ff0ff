// SPDX-License-Identifier: Apache-2.0
// SlotWriter: writes to slots in the way that is faster where this process and its peers happen to run.
//
// Through the cache is best among cores that share one: the peers read from there. Between clusters of cores it is
// worst: each line must be asked back from the peer that has read it, which takes four times as long as writing past
// the cache. Where processes run changes while they run, so both ways are timed now and then. The choice never changes
// a result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ronde::collective {

enum class Store : uint8_t { Cached = 0, Streamed = 1 };

// The decision, from what it was told. Pure.
class StoreChoice {
 public:
  Store best() const;
  // For the next block: the best, now and then the other one.
  Store next();
  // What a byte cost, in any unit.
  void tell(Store store, double cost);

 private:
  double& cost_of(Store store) { return costs_[static_cast<size_t>(store)]; }
  std::array<double, 2> costs_{};  // smoothed; 0: not known
  unsigned blocks_ = 0;
};

class SlotWriter {
 public:
  // From memory that is anywhere.
  void write(std::byte* slot, const std::byte* from, size_t bytes) const;
  // From the first-level cache: what it takes is the target's doing, and is timed once after each begin_block().
  void write_near(std::byte* slot, const std::byte* from, size_t bytes);
  void begin_block();
  // What is computed may be computed straight into the slot.
  bool in_place() const { return timed_ && now_ == Store::Cached; }

 private:
  StoreChoice choice_;
  Store now_ = Store::Cached;
  bool timed_ = true;
};

}  // namespace ronde::collective
