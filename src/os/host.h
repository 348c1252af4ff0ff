// SPDX-License-Identifier: Apache-2.0
// Which host this is.
#pragma once

#include <string>

namespace ronde::os {

std::string host_name();
// Equal for two processes if they share a kernel, a host name and a network: then shared memory is worth trying.
std::string host_id();

}  // namespace ronde::os
