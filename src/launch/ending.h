// SPDX-License-Identifier: Apache-2.0
// How a rank ended, and how that is said. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ronde::launch {

struct Ending {
  enum class Kind : uint8_t { Exited = 0, Killed = 1, NotStarted = 2 };
  Kind kind = Kind::Exited;
  int32_t code = 0;  // exit status, number of the signal, errno
  bool out_of_memory = false;

  bool clean() const { return kind == Kind::Exited && code == 0; }
  bool operator==(const Ending&) const = default;
};
constexpr Ending::Kind kLastEndingKind = Ending::Kind::NotStarted;

// "9 (SIGKILL)".
std::string signal_text(int signal);
// "was killed by signal 9 (SIGKILL)", "exited with status 1 after ValueError: no", "could not be started: Permission
// denied". `told` is what the rank said itself before it ended.
std::string describe(const Ending& ending, std::string_view told = {});
// As a shell would give it: 128+n for a signal, 126 and 127 for what could not be started.
int exit_status(const Ending& ending);

}  // namespace ronde::launch
