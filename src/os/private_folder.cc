// SPDX-License-Identifier: Apache-2.0
#include "os/private_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace ronde::os {

std::string private_folder_base() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/' && ::access(runtime, W_OK | X_OK) == 0) return runtime;
  return "/tmp";
}

Status make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) return system_error(cat("create the folder ", path), errno);
  return {};
}

void remove_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

Status make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return system_error(cat("create the folder ", path), error.value());
  return {};
}

}  // namespace ronde::os
