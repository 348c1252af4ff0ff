// SPDX-License-Identifier: Apache-2.0
// RONDE_CHECK: an invariant of our own code, held in every build. Never for input, peers or the system: those are
// Status.
#pragma once

namespace ronde {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* message);
}  // namespace ronde

#define RONDE_CHECK(condition, message)                               \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::ronde::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)
