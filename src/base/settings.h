// SPDX-License-Identifier: Apache-2.0
// Settings: what a user may choose, read once before anything starts. One row of the table (settings_table.cc) per
// setting; the environment variable RONDE_BATCH_BYTES, the flag --batch-bytes, the check of the value, docs/settings.md
// and the list of `ronde settings` all come from the row `batch_bytes`.
//
// Who a process is (RONDE_RANK and others) is no setting: those names are known here and read by whoever needs them.
// All pure: the environment is handed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

namespace ronde {

enum class TransportChoice : uint8_t { Auto, Shm, Tcp };
// What a thread that waits does before it sleeps.
enum class Spin : uint8_t { Auto, Yield, Pause, Off };

// The initial values are the defaults.
struct Settings {
  TransportChoice transport = TransportChoice::Auto;
  LogLevel log_level = LogLevel::Warning;
  Duration init_timeout = std::chrono::seconds(300);
  Duration collective_timeout = std::chrono::seconds(1800);
  size_t batch_bytes = 8 << 20;
  Duration hold = std::chrono::milliseconds(5);
  size_t slot_bytes = 256 << 10;
  int slots = 4;
  size_t segment_bytes = 256 << 10;
  Spin spin = Spin::Auto;
  Duration heartbeat = std::chrono::seconds(1);
  std::string listen;
  bool operator==(const Settings&) const = default;
};

enum class Origin : uint8_t { Default, Environment, Flag };

struct ParsedSettings {
  Settings settings;
  std::vector<Origin> origins;        // by row of the table
  std::vector<std::string> warnings;  // one for each unknown RONDE_* name
};

using NameValues = std::vector<std::pair<std::string, std::string>>;

// `environment`: NAME and value, other names than RONDE_* are passed over. `flags`: names as in the table
// ("batch_bytes") or as typed ("batch-bytes"); they win. An empty value in the environment counts as not set. The error
// tells every bad value.
Result<ParsedSettings> parse_settings(std::span<const std::pair<std::string, std::string>> environment,
                                      std::span<const std::pair<std::string, std::string>> flags = {});
// The same settings for a child process: RONDE_* names and values of all that are not defaults.
NameValues settings_environment(const ParsedSettings& parsed);

// A row as text, for flags and listings.
struct SettingText {
  std::string_view name;      // "batch_bytes"
  std::string environment;    // "RONDE_BATCH_BYTES"
  std::string flag;           // "--batch-bytes"
  std::string expected;       // "a number of bytes such as 8388608 or 8M, from 4K to 1G"
  std::string default_value;  // "8M"
  std::string_view doc;
};
std::vector<SettingText> describe_settings();
// Values as they are now, by row.
std::vector<std::string> setting_values(const Settings& settings);

// docs/settings.md.
std::string settings_markdown();
// What `ronde settings` prints: name, value, unit and origin of each.
std::string settings_listing(const ParsedSettings& parsed);

}  // namespace ronde
