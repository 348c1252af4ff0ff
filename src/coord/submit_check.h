// SPDX-License-Identifier: Apache-2.0
// What a rank can refuse by itself, before anything is told to others. Errors are the caller's (InvalidArgument).
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "coord/flights.h"
#include "op/request.h"

namespace ronde::coord {

// One call of the user, whose requests all name the set with these `members` (ascending).
Status check_call(std::span<const Request> requests, const std::vector<Rank>& members, const Flights& flights);

}  // namespace ronde::coord
