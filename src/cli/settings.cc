// SPDX-License-Identifier: Apache-2.0
// ronde settings
#include "base/settings.h"

#include "cli/arguments.h"
#include "cli/say.h"
#include "launch/launcher.h"
#include "os/process.h"

namespace ronde::cli {

int settings_command(Words words) {
  const Usage usage{.command = "ronde settings",
                    .line = "[--markdown]",
                    .about = "Shows each setting, its value and where it comes from.",
                    .options = {{"--markdown", "", "the page docs/settings.md instead"}}};
  const auto arguments = parse_arguments(usage, words);
  if (!arguments.ok()) {
    launch::complain(arguments.status().with_context("settings").message());
    return kUsage;
  }
  if (!arguments->help().empty() || arguments->has("--markdown")) {
    say(arguments->help().empty() ? settings_markdown() : arguments->help());
    return 0;
  }
  const auto parsed = parse_settings(launch::name_values(os::own_environment()));
  if (!parsed.ok()) {
    launch::complain(parsed.status().message());
    return kUsage;
  }
  for (const auto& warning : parsed->warnings) launch::complain(warning);
  say(settings_listing(*parsed));
  return 0;
}

}  // namespace ronde::cli
