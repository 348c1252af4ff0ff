// SPDX-License-Identifier: Apache-2.0
// What is wrong with a request, as far as this rank alone can tell. Pure.
#pragma once

#include <vector>

#include "base/status.h"
#include "op/batch.h"
#include "op/request.h"

namespace ronde::engine {

// `members`: the ranks of its set, ascending.
Status validate(const Request& request, const Binding& binding, const std::vector<Rank>& members);

}  // namespace ronde::engine
