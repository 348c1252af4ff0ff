// SPDX-License-Identifier: Apache-2.0
#include "coord/decisions.h"

#include <algorithm>
#include <utility>

#include "coord/mismatch.h"

namespace ronde::coord {
namespace {

template <class T>
std::vector<T> slice(const std::vector<T>& all, size_t from, size_t most) {
  const size_t end = std::min(from + most, all.size());
  return {all.begin() + static_cast<ptrdiff_t>(from), all.begin() + static_cast<ptrdiff_t>(end)};
}

}  // namespace

uint32_t Decisions::name_id(SetId set, const std::string& name) {
  if (const auto known = names_.find(set, name)) return *known;
  const uint32_t id = names_.next_id();
  RONDE_CHECK(names_.define(id, set, name).ok(), "the next id of an unknown name is free");
  frames_.add(DecisionItem(DefineName{id, set, name}));
  ++counters_.definitions;
  return id;
}

uint32_t Decisions::signature_id(const Signature& signature) {
  if (const auto known = signatures_.find(signature)) return *known;
  const uint32_t id = signatures_.next_id();
  RONDE_CHECK(signatures_.define(id, signature).ok(), "the next id of an unknown signature is free");
  frames_.add(DecisionItem(DefineSignature{id, signature}));
  ++counters_.definitions;
  return id;
}

std::string Decisions::text_of(const Key& key) const {
  return key.unnamed ? cat("unnamed ", key.value) : cat("'", names_.at(key.value)->name, "'");
}

void Decisions::add_batch(SetId set, std::vector<BatchEntry> entries) {
  frames_.add(DecisionItem(BatchDecision{++counters_.batches, set, std::move(entries)}));
}

void Decisions::add_end(SetId set, const Status& status, const Ended& ended) {
  const std::string text = clipped(status.message(), kMaxTextBytes);
  for (size_t k = 0; k < ended.keys.size(); k += kMaxFailedKeys) {
    for (size_t r = 0; r < ended.ranks.size(); r += kMaxFailedRanks) {
      frames_.add(DecisionItem(Failed{set, status.code(), text, slice(ended.keys, k, kMaxFailedKeys),
                                      slice(ended.ranks, r, kMaxFailedRanks)}));
    }
  }
}

}  // namespace ronde::coord
