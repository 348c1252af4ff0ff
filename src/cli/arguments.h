// SPDX-License-Identifier: Apache-2.0
// Options of a command as a table, and what was given of them. Pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace ronde::cli {

struct OptionRow {
  std::string name;   // "--grace"; "--np" is shown as the "-np" that people type
  std::string value;  // what its value is called in the help, "SECONDS"; "" takes none
  std::string help;
  bool repeated = false;  // may be given several times; otherwise the last one counts
};

struct Usage {
  std::string command;  // "ronde run"
  std::string line;     // what follows it, "-np N [options] [--] command ..."
  std::string about;
  std::vector<OptionRow> options;
};

// How option and value stand in messages.
std::string shown_name(const OptionRow& row);

class Arguments {
 public:
  bool has(std::string_view name) const { return values_.contains(name); }
  // The value given last.
  std::optional<std::string> text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  // Not empty: --help was asked for.
  const std::string& help() const { return help_; }

 private:
  friend Result<Arguments> parse_arguments(const Usage& usage, Words words);
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::string help_;
};

// Options only: "--name value", "--name=value" and "--flag". Whatever is none is an error that names it.
Result<Arguments> parse_arguments(const Usage& usage, Words words);

}  // namespace ronde::cli
