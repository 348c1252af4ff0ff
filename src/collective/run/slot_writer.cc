// SPDX-License-Identifier: Apache-2.0
#include "collective/run/slot_writer.h"

#include <algorithm>

#include "collective/run/copy.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace ronde::collective {
namespace {

// Streaming makes the peers read from memory, so it must be faster by so much.
constexpr double kWorthStreaming = 1.5;
constexpr unsigned kProbeEvery = 16;
// One sample moves the estimate by a quarter, and counts for so many times the estimate at most: it may have been
// interrupted.
constexpr double kWeight = 0.25;
constexpr double kMostTimes = 2.5;
// Less says nothing about a stream of stores.
constexpr size_t kLeastTimedBytes = 8 * 1024;

// Not a clock: nothing but the choice between two stores depends on it.
uint64_t cycles() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

Copy copy_of(Store store) {
  return store == Store::Streamed ? stream_bytes : copy_bytes;
}

}  // namespace

Store StoreChoice::best() const {
  const double cached = costs_[static_cast<size_t>(Store::Cached)];
  const double streamed = costs_[static_cast<size_t>(Store::Streamed)];
  return streamed > 0 && cached > kWorthStreaming * streamed ? Store::Streamed : Store::Cached;
}

Store StoreChoice::next() {
  for (const Store store : {Store::Cached, Store::Streamed})
    if (cost_of(store) == 0) return store;
  const Store other = best() == Store::Cached ? Store::Streamed : Store::Cached;
  return ++blocks_ % kProbeEvery == 0 ? other : best();
}

void StoreChoice::tell(Store store, double cost) {
  double& known = cost_of(store);
  if (known == 0) {
    known = cost;
  } else {
    known += kWeight * (std::min(cost, kMostTimes * known) - known);
  }
}

void SlotWriter::write(std::byte* slot, const std::byte* from, size_t bytes) const {
  copy_of(choice_.best())(slot, from, bytes);
}

void SlotWriter::write_near(std::byte* slot, const std::byte* from, size_t bytes) {
  if (timed_ || bytes < kLeastTimedBytes) return copy_of(now_)(slot, from, bytes);
  const uint64_t begin = cycles();
  copy_of(now_)(slot, from, bytes);
  choice_.tell(now_, static_cast<double>(cycles() - begin) / static_cast<double>(bytes));
  timed_ = true;
}

void SlotWriter::begin_block() {
  now_ = choice_.next();
  timed_ = false;
}

}  // namespace ronde::collective
