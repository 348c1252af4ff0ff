// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <execinfo.h>
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"

namespace ronde {

// Written with write(2): a broken invariant may be found while a lock of the logger or of stdio is held.
void check_failed(const char* file, int line, const char* condition, const char* message) {
  const std::string text = cat("ronde: ", file, ":", line, ": check failed: ", condition, ": ", message, "\n");
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  void* frames[64];
  const int count = ::backtrace(frames, 64);
  ::backtrace_symbols_fd(frames, count, STDERR_FILENO);
  std::abort();
}

}  // namespace ronde
