// SPDX-License-Identifier: Apache-2.0
// The log: lines on stderr, "[ronde 12:01:02.345 rank 3] warning: text", each written by one write(2), so that the
// lines of several processes do not mix. It holds no lock: a child of fork may log at once.
//
// The logger is the one object of the process that needs no handing in. Thread: any.
#pragma once

#include <cstdint>
#include <string_view>

namespace ronde {

enum class LogLevel : uint8_t { Trace = 0, Debug = 1, Info = 2, Warning = 3, Error = 4, Off = 5 };

// "trace" ... "off".
std::string_view log_level_name(LogLevel level);

// Lines below the level are dropped. Warning until it is set.
void set_log_level(LogLevel level);
// For messages that are dear to put together.
bool log_enabled(LogLevel level);
// Shown in every line from now on; -1: this process has no rank.
void set_log_context(int rank);

void log_line(LogLevel level, std::string_view text);

inline void log_trace(std::string_view text) {
  log_line(LogLevel::Trace, text);
}
inline void log_debug(std::string_view text) {
  log_line(LogLevel::Debug, text);
}
inline void log_info(std::string_view text) {
  log_line(LogLevel::Info, text);
}
inline void log_warning(std::string_view text) {
  log_line(LogLevel::Warning, text);
}
inline void log_error(std::string_view text) {
  log_line(LogLevel::Error, text);
}

}  // namespace ronde
