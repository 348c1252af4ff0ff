// SPDX-License-Identifier: Apache-2.0
// Files that nobody but their owner may read: how a secret reaches another process of the same user.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace ronde::os {

// The whole file, if it is a regular file of this user (or of root), closed to all others, of at most `max_bytes`.
// Errors name the path, what is wrong with it, and what to do.
Result<std::string> read_private_file(const std::string& path, size_t max_bytes);
// Makes a new file of mode 0600; one that exists already is an error.
Status write_private_file(const std::string& path, const std::string& contents);

}  // namespace ronde::os
