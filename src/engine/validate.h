// SPDX-License-Identifier: Apache-2.0
// What is wrong with a request, as far as this rank alone can tell. Pure.
#pragma once

#include "base/status.h"
#include "op/batch.h"
#include "op/request.h"

namespace ronde::engine {

Status validate(const Request& request, const Binding& binding, Rank size);

}  // namespace ronde::engine
