// SPDX-License-Identifier: Apache-2.0
// Options of a command as a table, parsed by CLI11, which only arguments.cc sees.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace ronde::cli {

struct OptionRow {
  std::string name;   // "--grace"
  std::string value;  // what its value is called in the help, "SECONDS"; "" takes none
  std::string help;
  bool repeated = false;  // may be given several times, one value each
};

struct Usage {
  std::string line;  // "ronde run -np N [options] [--] command ..."
  std::string about;
  std::vector<OptionRow> options;
};

class Arguments {
 public:
  bool has(std::string_view name) const { return values_.contains(name); }
  // The value given last; "" if there is none.
  std::string text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  // Not empty: --help was asked for.
  const std::string& help() const { return help_; }

 private:
  friend Result<Arguments> parse_arguments(const Usage& usage, Words words);
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::string help_;
};

// Options only: whatever is none is an error that names it.
Result<Arguments> parse_arguments(const Usage& usage, Words words);

}  // namespace ronde::cli
