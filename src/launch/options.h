// SPDX-License-Identifier: Apache-2.0
// What the user asked of `ronde run`, checked. Errors name the value and say what would be right. Pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace ronde::launch {

constexpr int kMaxRanks = 4096;

struct RunOptions {
  int np = 0;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> env;  // in the order given
  bool prefix = true;
  std::string output_dir;  // "": the console
  Duration grace = std::chrono::seconds(3);
  int lifeline = -1;    // a pipe of whoever started this; its end ends the job as SIGTERM does, and removes `scratch`
  std::string scratch;  // a folder; "": none
};

// As they stand on the command line.
struct RunTexts {
  std::optional<std::string> np;
  std::vector<std::string> env;
  bool no_prefix = false;
  std::optional<std::string> output_dir;
  std::optional<std::string> grace;
  std::optional<std::string> lifeline;
  std::optional<std::string> scratch;
  std::vector<std::string> command;
};
Result<RunOptions> check_run(const RunTexts& texts);

// The command begins at the first word that is neither an option nor an option's value, or after "--"; from there on
// nothing is ours.
struct SplitArguments {
  std::vector<std::string> options;  // "-np" as "--np"
  std::vector<std::string> command;
};
SplitArguments split_command(std::span<const std::string> arguments,
                             const std::function<bool(std::string_view option)>& takes_value);

}  // namespace ronde::launch
