// SPDX-License-Identifier: Apache-2.0
#include "launch/ending.h"

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace ronde::launch {

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? cat(signal) : cat(signal, " (SIG", name, ")");
}

std::string describe(const Ending& ending, std::string_view told) {
  std::string out;
  switch (ending.kind) {
    case Ending::Kind::Exited:
      out = cat("exited with status ", ending.code);
      break;
    case Ending::Kind::Killed:
      out = cat(ending.out_of_memory ? "was killed by the kernel, out of memory: signal " : "was killed by signal ",
                signal_text(ending.code));
      break;
    case Ending::Kind::NotStarted:
      return cat("could not be started: ", std::strerror(ending.code));
  }
  if (!told.empty()) out += cat(" after ", told);
  return out;
}

int exit_status(const Ending& ending) {
  switch (ending.kind) {
    case Ending::Kind::Exited:
      return ending.code;
    case Ending::Kind::Killed:
      return 128 + ending.code;
    case Ending::Kind::NotStarted:
      return ending.code == ENOENT ? 127 : 126;
  }
  return 1;
}

}  // namespace ronde::launch
