// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/say.h"

namespace ronde::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "start a program on several ranks", run_command},
    {"settings", "show each setting, its value and where it comes from", settings_command},
    {"bench", "measure collectives on this machine", bench_command},
    {"version", "show the version", version_command},
    {"agent", "", agent_command},
};

std::string usage() {
  std::string out = "Trains one model on many processes.\n\nUsage: ronde COMMAND ...\n\nCommands:\n";
  for (const auto& command : kCommands) {
    if (!command.summary.empty())
      out += cat("  ", command.name, std::string(12 - command.name.size(), ' '), command.summary, "\n");
  }
  return out + "\n`ronde COMMAND --help` tells more, for example: ronde run -np 2 python train.py\n";
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

int dispatch(Words words) {
  if (words.empty()) {
    say_error(usage());
    return kUsage;
  }
  const std::string& name = words[0];
  if (name == "--help" || name == "-h" || name == "help") {
    if (name == "help" && words.size() > 1 && words[1] != name)
      return dispatch(std::vector<std::string>{words[1], "--help"});
    say(usage());
    return 0;
  }
  const std::string_view wanted = name == "--version" ? "version" : std::string_view(name);
  const auto found =
      std::find_if(std::begin(kCommands), std::end(kCommands), [&](const auto& one) { return one.name == wanted; });
  if (found != std::end(kCommands)) return found->run(words.subspan(1));
  say_error(cat("ronde: there is no command '", name, "'; `ronde --help` lists them\n"));
  return kUsage;
}

}  // namespace ronde::cli
