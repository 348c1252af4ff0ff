// SPDX-License-Identifier: Apache-2.0
// Finds the program of a command as a shell does, so that a mistake is told before anything starts.
#pragma once

#include <string>
#include <variant>

namespace ronde::launch {

struct FoundProgram {
  std::string path;
};
struct NoProgram {
  int status = 127;  // 127: there is none; 126: it cannot be executed
  std::string message;
};
// `path` is the value of PATH for the ranks.
std::variant<FoundProgram, NoProgram> find_program(const std::string& name, const std::string& path);

}  // namespace ronde::launch
