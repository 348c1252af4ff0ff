// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace ronde::cli {
namespace {

// "--np" is shown as the "-np" that people type.
std::string names_of(const OptionRow& row) {
  return row.name == "--np" ? "-n,--np" : row.name;
}

std::string help_text(const Usage& usage) {
  std::string out = cat("Usage: ", usage.line, "\n\n", usage.about, "\n\nOptions:\n");
  const auto left = [](const OptionRow& row) {
    const std::string name = row.name == "--np" ? "-np" : row.name;
    return row.value.empty() ? name : cat(name, " ", row.value);
  };
  size_t width = 0;
  for (const auto& row : usage.options) width = std::max(width, left(row).size());
  for (const auto& row : usage.options) {
    out += cat("  ", left(row), std::string(width + 2 - left(row).size(), ' '), row.help, "\n");
  }
  return out;
}

}  // namespace

std::string Arguments::text(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() || found->second.empty() ? std::string() : found->second.back();
}

std::vector<std::string> Arguments::texts(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

Result<Arguments> parse_arguments(const Usage& usage, Words words) {
  CLI::App app;
  app.set_help_flag();
  bool wants_help = false;
  app.add_flag("-h,--help", wants_help);
  std::vector<std::vector<std::string>> values(usage.options.size());
  std::vector<CLI::Option*> options;
  for (size_t i = 0; i < usage.options.size(); ++i) {
    const OptionRow& row = usage.options[i];
    if (row.value.empty()) {
      options.push_back(app.add_flag(names_of(row)));
    } else {
      options.push_back(app.add_option(names_of(row), values[i])->allow_extra_args(false));
      if (!row.repeated) options.back()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->expected(1);
    }
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  std::ranges::replace(reversed, "-np", "--np");
  try {
    app.parse(reversed);
  } catch (const CLI::Error& error) {
    return Status(Code::InvalidArgument, error.what());
  }
  Arguments out;
  if (wants_help) out.help_ = help_text(usage);
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i]->count() > 0) out.values_[usage.options[i].name] = values[i];
  }
  return out;
}

}  // namespace ronde::cli
