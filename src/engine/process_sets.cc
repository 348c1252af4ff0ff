// SPDX-License-Identifier: Apache-2.0
#include "engine/process_sets.h"

#include <algorithm>
#include <numeric>

namespace ronde::engine {
namespace {

std::vector<Rank> all_ranks(Rank size) {
  std::vector<Rank> out(static_cast<size_t>(size));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

ProcessSets::ProcessSets(Rank self, Rank size)
    : self_(self), world_(std::make_shared<const std::vector<Rank>>(all_ranks(size))) {}

Result<ProcessSets::Members> ProcessSets::members_for(SetId id) const {
  if (id == kWorldSet) return world_;
  const std::lock_guard lock(mutex_);
  const auto found = added_.find(id);
  if (found == added_.end()) {
    return Status(Code::InvalidArgument, cat("there is no process set ", id, ": it was never added, or was removed"));
  }
  if (!std::ranges::binary_search(*found->second, self_)) {
    return Status(Code::InvalidArgument, cat("rank ", self_, " is not in process set ", id));
  }
  return found->second;
}

void ProcessSets::add(SetId id, std::vector<Rank> members) {
  const std::lock_guard lock(mutex_);
  added_.emplace(id, std::make_shared<const std::vector<Rank>>(std::move(members)));
}

void ProcessSets::remove(SetId id) {
  const std::lock_guard lock(mutex_);
  added_.erase(id);
}

}  // namespace ronde::engine
