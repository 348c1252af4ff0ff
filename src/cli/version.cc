// SPDX-License-Identifier: Apache-2.0
// ronde version
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/say.h"
#include "launch/launcher.h"
#include "ronde/ronde.h"

namespace ronde::cli {

int version_command(Words words) {
  const Usage usage{.command = "ronde version", .line = "", .about = "Shows the version.", .options = {}};
  const auto arguments = parse_arguments(usage, words);
  if (!arguments.ok()) {
    launch::complain(arguments.status().with_context("version").message());
    return kUsage;
  }
  say(arguments->help().empty() ? cat("ronde ", ronde_version(), "\n") : arguments->help());
  return 0;
}

}  // namespace ronde::cli
