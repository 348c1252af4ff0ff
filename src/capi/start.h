// SPDX-License-Identifier: Apache-2.0
// An engine from what the environment says.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace ronde::capi {

Result<std::shared_ptr<engine::Engine>> start_from_environment();

}  // namespace ronde::capi
