// SPDX-License-Identifier: Apache-2.0
// The connections that a rank makes while it sets itself up: to the store, and where nothing is shared, to rank 0.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/identity.h"
#include "engine/parts.h"

namespace ronde::engine {

// Tries until the deadline: the rank that is the store may not be up yet.
Result<std::unique_ptr<member::StoreClient>> connect_store(std::span<const os::Address> addresses,
                                                           const member::Key& key, const JobIdentity& identity,
                                                           Time deadline);

// Listens, tells the others where, and makes the control links: parts.greeter, links, coordinator, ranks.
Status connect_over_tcp(Parts& parts, const member::Key& key, Time deadline);

}  // namespace ronde::engine
