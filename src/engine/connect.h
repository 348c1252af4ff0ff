// SPDX-License-Identifier: Apache-2.0
// The connections that a rank makes while it sets itself up, where nothing is shared.
#pragma once

#include "engine/parts.h"

namespace ronde::engine {

// Listens, tells the others where, and makes the control links: parts.greeter, links, coordinator, ranks.
Status connect_over_tcp(Parts& parts, const member::Key& key, Time deadline);

}  // namespace ronde::engine
