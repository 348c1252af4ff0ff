// SPDX-License-Identifier: Apache-2.0
#include "capi/start.h"

#include <unistd.h>

#include <string_view>

#include "base/log.h"
#include "base/settings.h"
#include "capi/process.h"
#include "os/host.h"

namespace ronde::capi {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

Environment read_environment() {
  Environment out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) out.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

std::optional<std::string> find(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return value;
  }
  return std::nullopt;
}

// Real time, for engines outside of tests. Leaked like the process's other state.
engine::TimeSource real_time() {
  static const auto* const clock = new SteadyClock;
  static auto* const sleeper = new os::SystemSleeper;
  return {.clock = clock, .sleeper = sleeper};
}

}  // namespace

Result<std::shared_ptr<engine::Engine>> start_from_environment() {
  const Environment environment = read_environment();
  RONDE_ASSIGN(const ParsedSettings parsed, parse_settings(environment));
  RONDE_ASSIGN(const engine::JobIdentity identity,
               engine::parse_identity([&](const char* name) { return find(environment, name); }));
  set_log_level(parsed.settings.log_level);
  set_log_context(identity.size > 1 ? identity.rank : -1);
  // The launcher has warned already.
  const bool warns = identity.rank == 0 && !identity.launched;
  for (const std::string& warning : parsed.warnings) {
    if (warns) log_warning(warning);
  }
  Process& process = Process::instance();
  process.watch_forks();
  const std::lock_guard lock(process.init_mutex);
  Result<engine::Parts> parts = engine::bootstrap({.identity = identity,
                                                   .settings = parsed.settings,
                                                   .time = real_time(),
                                                   .memory = engine::memory_from_broker(),
                                                   .host_id = os::host_id(),
                                                   .host_name = os::host_name(),
                                                   .services = &process.services});
  if (!parts.ok()) return parts.status();
  return engine::Engine::start(std::move(parts).value());
}

}  // namespace ronde::capi
