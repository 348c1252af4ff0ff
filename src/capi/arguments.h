// SPDX-License-Identifier: Apache-2.0
// From the C structs to the engine's values. Pure.
#pragma once

#include <span>
#include <vector>

#include "engine/engine.h"
#include "ronde/ronde.h"

namespace ronde::capi {

Result<std::vector<engine::Submission>> to_submissions(const ronde_tensor* tensors, size_t count);

}  // namespace ronde::capi
