// SPDX-License-Identifier: Apache-2.0
#include "launch/program_search.h"

#include <string_view>

#include "base/text.h"
#include "os/executable.h"

namespace ronde::launch {
namespace {

using os::Executable;

std::variant<FoundProgram, NoProgram> try_path(const std::string& name, const std::string& path) {
  switch (os::look_for_executable(path)) {
    case Executable::Yes:
      return FoundProgram{path};
    case Executable::Folder:
      return NoProgram{126, cat("cannot execute '", name, "': ", path, " is a folder")};
    case Executable::NotPermitted:
      return NoProgram{126, cat("cannot execute '", name, "': ", path,
                                " is not executable (chmod +x, or put its interpreter in front)")};
    case Executable::Missing:
      break;
  }
  return NoProgram{127, cat("there is no file '", name, "'")};
}

}  // namespace

std::variant<FoundProgram, NoProgram> find_program(const std::string& name, const std::string& path) {
  if (name.find('/') != name.npos) return try_path(name, name);
  NoProgram failure{127, cat("there is no command '", name, "' on PATH (", path, ")")};
  for (std::string_view rest = path;;) {
    const auto folder = rest.substr(0, rest.find(':'));
    auto found = try_path(name, folder.empty() ? cat("./", name) : cat(folder, "/", name));
    if (std::holds_alternative<FoundProgram>(found)) return found;
    if (const auto& missed = std::get<NoProgram>(found); missed.status == 126 && failure.status == 127)
      failure = missed;
    if (folder.size() == rest.size()) return failure;
    rest.remove_prefix(folder.size() + 1);
  }
}

}  // namespace ronde::launch
