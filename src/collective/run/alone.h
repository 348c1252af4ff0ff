// SPDX-License-Identifier: Apache-2.0
// A batch with one member: nothing travels; inputs are scaled into outputs.
#pragma once

#include <memory>

#include "collective/run/running.h"
#include "op/batch.h"

namespace ronde::collective {

// `bound` outlives the result.
std::unique_ptr<Running> start_alone(const BoundBatch& bound);

}  // namespace ronde::collective
