// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <memory>

namespace ronde {
namespace {

constexpr std::array<std::string_view, 6> kLevelNames{"trace", "debug", "info", "warning", "error", "off"};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  constexpr std::array kLevels{spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                               spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};
  return kLevels[static_cast<size_t>(level)];
}

std::string_view name_of(spdlog::level::level_enum level) {
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (to_spdlog(static_cast<LogLevel>(i)) == level) return kLevelNames[i];
  }
  return "critical";
}

// One line, one write. spdlog's own sinks take a lock, which a fork could copy while it is held.
class StderrSink final : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    using std::chrono::milliseconds;
    const auto tm = spdlog::details::os::localtime(std::chrono::system_clock::to_time_t(message.time));
    const auto since_epoch = std::chrono::duration_cast<milliseconds>(message.time.time_since_epoch()).count();
    fmt::memory_buffer line;
    auto out = std::back_inserter(line);
    fmt::format_to(out, "[ronde {:02}:{:02}:{:02}.{:03}", tm.tm_hour, tm.tm_min, tm.tm_sec, since_epoch % 1000);
    if (const int rank = rank_.load(); rank >= 0) fmt::format_to(out, " rank {}", rank);
    fmt::format_to(out, "] {}: {}\n", name_of(message.level),
                   std::string_view(message.payload.data(), message.payload.size()));
    write_out({line.data(), line.size()});
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
  void set_rank(int rank) { rank_.store(rank); }

 private:
  static void write_out(std::string_view rest) {
    while (!rest.empty()) {
      const auto written = ::write(STDERR_FILENO, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;  // nobody can be told
      rest.remove_prefix(static_cast<size_t>(written));
    }
  }
  std::atomic<int> rank_{-1};
};

struct Log {
  std::shared_ptr<StderrSink> sink = std::make_shared<StderrSink>();
  spdlog::logger logger{"ronde", sink};
  Log() { logger.set_level(spdlog::level::warn); }
};

// Leaked: threads may log while the process exits.
Log& the_log() {
  static Log* const log = new Log;
  return *log;
}

}  // namespace

std::string_view log_level_name(LogLevel level) {
  return kLevelNames[static_cast<size_t>(level)];
}
void set_log_level(LogLevel level) {
  the_log().logger.set_level(to_spdlog(level));
}
bool log_enabled(LogLevel level) {
  return level != LogLevel::Off && the_log().logger.should_log(to_spdlog(level));
}
void set_log_context(int rank) {
  the_log().sink->set_rank(rank);
}

void log_line(LogLevel level, std::string_view text) {
  if (log_enabled(level)) the_log().logger.log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace ronde
