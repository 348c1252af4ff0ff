// SPDX-License-Identifier: Apache-2.0
// ProcessSets: the sets that exist, for the users' threads, which check what they submit. Changed by the driver at the
// set's place in the order. Thread: any.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "op/request.h"

namespace ronde::engine {

class ProcessSets {
 public:
  using Members = std::shared_ptr<const std::vector<Rank>>;

  ProcessSets(Rank self, Rank size);
  // The ranks of the set, ascending; an error if there is no such set, or this rank is not in it.
  Result<Members> members_for(SetId id) const;
  void add(SetId id, std::vector<Rank> members);
  void remove(SetId id);

 private:
  Rank self_;
  Members world_;
  mutable std::mutex mutex_;  // guards added_
  std::unordered_map<SetId, Members> added_;
};

}  // namespace ronde::engine
