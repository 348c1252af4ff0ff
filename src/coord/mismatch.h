// SPDX-License-Identifier: Apache-2.0
// The texts of failures that the coordinator finds. The member puts its own operation in front ("allreduce 'x': ...").
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "op/request.h"

namespace ronde::coord {

// "rank 1", "ranks 1 and 2", "ranks 1, 2 and 5", "ranks 0, 1, 2 and 61 more"
std::string list_ranks(const std::vector<Rank>& ranks);

// What differs: "rank 0 asks for allreduce(average) float32[2], rank 3 for ...; all ranks must agree on the shape".
std::string signature_mismatch(Rank first, const Signature& a, Rank second, const Signature& b);

// A call of the user as the keys' texts ("'x'", "unnamed 3").
struct Call {
  Rank rank;
  std::vector<std::string> keys;
};
std::string group_mismatch(const Call& first, const Call& second);

struct Overdue {
  std::vector<Rank> missing;    // have not submitted
  std::vector<Rank> unflushed;  // have submitted with `more` and not flushed since
  Duration age;
};
std::string overdue(const Overdue& what);

// At most `max_bytes`, with "..." where something was left out; never inside a UTF-8 character.
std::string clipped(std::string text, size_t max_bytes);

}  // namespace ronde::coord
