// SPDX-License-Identifier: Apache-2.0
// Where a rank stands among the members of a batch.
#pragma once

#include <algorithm>

#include "op/request.h"

namespace ronde::collective {

// `rank` is a member of the batch.
inline size_t index_of(const Batch& batch, Rank rank) {
  const auto found = std::ranges::lower_bound(batch.members, rank);
  RONDE_CHECK(found != batch.members.end() && *found == rank, "a rank of a batch is one of its members");
  return static_cast<size_t>(found - batch.members.begin());
}

}  // namespace ronde::collective
