// SPDX-License-Identifier: Apache-2.0
// Which backend runs a batch: the first of the engine's table that supports it.
#pragma once

#include <memory>
#include <span>

#include "backend/backend.h"

namespace ronde::backend {

// An error of code Unsupported names the batch and every backend that was asked.
Result<Backend*> select(std::span<const std::unique_ptr<Backend>> table, const Batch& batch);

}  // namespace ronde::backend
