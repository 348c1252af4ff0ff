// SPDX-License-Identifier: Apache-2.0
#include "os/executable.h"

#include <sys/stat.h>
#include <unistd.h>

namespace ronde::os {

Executable look_for_executable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Executable::Missing;
  if (S_ISDIR(info.st_mode)) return Executable::Folder;
  return ::access(path.c_str(), X_OK) == 0 ? Executable::Yes : Executable::NotPermitted;
}

}  // namespace ronde::os
