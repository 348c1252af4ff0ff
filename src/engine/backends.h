// SPDX-License-Identifier: Apache-2.0
// The table of backends of an engine, in order of preference: the first that supports a batch runs it.
#pragma once

#include "engine/parts.h"

namespace ronde::engine {

// Also makes the waker, which rings the bells of the host's ranks.
void add_backends(Parts& parts);

}  // namespace ronde::engine
