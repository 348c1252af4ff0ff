// SPDX-License-Identifier: Apache-2.0
// The commands of `ronde`. Each is one file with one function; adding one takes that file, its declaration here and its
// row in the table of commands.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ronde::cli {

// What stands behind the command's name.
using Words = std::span<const std::string>;

struct Command {
  std::string_view name;
  std::string_view summary;  // "": not listed
  int (*run)(Words words);   // gives the exit status
};

std::span<const Command> commands();
// Runs the command that the first word names.
int dispatch(Words words);

int run_command(Words words);
int settings_command(Words words);
int version_command(Words words);
int bench_command(Words words);
int agent_command(Words words);

// The command line itself was wrong.
constexpr int kUsage = 2;

}  // namespace ronde::cli
