// SPDX-License-Identifier: Apache-2.0
// A folder that only its owner may enter, for the secrets and the scratch files of a job.
#pragma once

#include <string>

#include "base/status.h"

namespace ronde::os {

// Where such folders go: $XDG_RUNTIME_DIR if it can be written, else /tmp.
std::string private_folder_base();
// Mode 0700; one that exists already is an error.
Status make_private_folder(const std::string& path);
// With everything in it; links are not followed. Nothing happens if it does not exist.
void remove_folder(const std::string& path);
// With its parents, open to all that the umask lets in.
Status make_folder(const std::string& path);

}  // namespace ronde::os
