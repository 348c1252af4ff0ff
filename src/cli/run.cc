// SPDX-License-Identifier: Apache-2.0
// ronde run: options and settings are checked here, before anything starts; the rest is launch/.
#include <algorithm>

#include "base/settings.h"
#include "cli/arguments.h"
#include "cli/say.h"
#include "launch/launcher.h"
#include "os/process.h"
#include "os/socket.h"

namespace ronde::cli {
namespace {

Usage run_usage() {
  Usage usage{
      .command = "ronde run",
      .line = "-np N [options] [--] command ...",
      .about =
          "Starts the command N times, as ranks 0 to N-1 of one job, and ends with the status of the first rank that "
          "failed.\n"
          "Rank 0 has the standard input. Ctrl-C goes to all ranks, which may take their time; a second one kills "
          "them.\n"
          "With -np 1 the rank keeps the terminal: Ctrl-C is its own affair and its status is returned; a second one "
          "within\n"
          "10 seconds kills it, unless it is at a prompt.\n"
          "Settings may be given as options too; `ronde settings` lists them.",
      .options = {
          {"--np", "N", "how many ranks to start"},
          {"--env", "NAME=VALUE", "set a variable for the ranks; may be repeated", true},
          {"--no-prefix", "", "pass the output on as it is, without the rank before each line"},
          {"--output-dir", "DIR", "write each rank's output to DIR/rank.N.stdout and DIR/rank.N.stderr instead"},
          {"--grace", "SECONDS", "how long the other ranks may go on when one has failed (default 3)"},
          {"--lifeline", "FD", "for programs that start this: a pipe's reading end; when it ends, so does the job"},
          {"--scratch", "DIR", "a folder that is removed when the lifeline ends"}}};
  for (const auto& setting : describe_settings()) {
    usage.options.push_back({setting.flag, "VALUE", cat(setting.doc, " (", setting.expected, ")")});
  }
  return usage;
}

NameValues setting_flags(const Arguments& arguments) {
  NameValues out;
  for (const auto& setting : describe_settings()) {
    if (const auto value = arguments.text(setting.flag)) out.emplace_back(std::string(setting.name), *value);
  }
  return out;
}

// Where the ranks are to listen; they are on this host.
Status check_listen(const ParsedSettings& parsed) {
  const std::string& given = parsed.settings.listen;
  if (given.empty()) return {};
  const auto listener = os::listen_on_name(given);
  if (listener.ok()) return {};
  const auto rows = describe_settings();
  const auto row = std::ranges::find(rows, "listen", &SettingText::name) - rows.begin();
  const bool flag = parsed.origins[static_cast<size_t>(row)] == Origin::Flag;
  return listener.status().with_context(cat(flag ? "--listen " : "RONDE_LISTEN=", given));
}

// The settings as the ranks will see them. Those given as options go into their environment.
Status check_settings(const NameValues& flags, const launch::Environment& env, launch::RunOptions& options) {
  const auto pairs = launch::name_values(launch::with_additions(env, options.env));
  RONDE_ASSIGN(const auto parsed, parse_settings(pairs, flags));
  for (const auto& warning : parsed.warnings) launch::complain(warning);
  RONDE_TRY(check_listen(parsed));
  RONDE_ASSIGN(const auto from_flags, parse_settings({}, flags));
  for (auto& entry : settings_environment(from_flags)) options.env.push_back(std::move(entry));
  return {};
}

Result<launch::RunOptions> read_options(const Arguments& arguments, std::vector<std::string> command) {
  return launch::check_run({.np = arguments.text("--np"),
                            .env = arguments.texts("--env"),
                            .no_prefix = arguments.has("--no-prefix"),
                            .output_dir = arguments.text("--output-dir"),
                            .grace = arguments.text("--grace"),
                            .lifeline = arguments.text("--lifeline"),
                            .scratch = arguments.text("--scratch"),
                            .command = std::move(command)});
}

int refuse(const Status& status) {
  launch::complain(status.message());
  return kUsage;
}

}  // namespace

int run_command(Words words) {
  const Usage usage = run_usage();
  const auto takes_value = [&](std::string_view name) {
    if (name == "-n") return true;
    const auto row =
        std::find_if(usage.options.begin(), usage.options.end(), [&](const auto& one) { return one.name == name; });
    return row != usage.options.end() && !row->value.empty();
  };
  auto split = launch::split_command(words, takes_value);
  const auto arguments = parse_arguments(usage, split.options);
  if (!arguments.ok()) return refuse(arguments.status().with_context("run"));
  if (!arguments->help().empty()) {
    say(arguments->help());
    return 0;
  }
  auto options = read_options(*arguments, std::move(split.command));
  if (!options.ok()) return refuse(options.status());
  const auto env = os::own_environment();
  if (const Status status = check_settings(setting_flags(*arguments), env, *options); !status.ok())
    return refuse(status);
  return launch::run_job(*options, env);
}

}  // namespace ronde::cli
