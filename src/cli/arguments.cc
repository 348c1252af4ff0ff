// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <algorithm>
#include <cctype>

namespace ronde::cli {
namespace {

std::string help_text(const Usage& usage) {
  std::string out = cat("Usage: ", usage.command, usage.line.empty() ? "" : " ", usage.line, "\n\n", usage.about, "\n");
  const auto left = [](const OptionRow& row) {
    return row.value.empty() ? shown_name(row) : cat(shown_name(row), " ", row.value);
  };
  size_t width = 0;
  for (const auto& row : usage.options) width = std::max(width, left(row).size());
  if (!usage.options.empty()) out += "\nOptions:\n";
  for (const auto& row : usage.options) {
    out += cat("  ", left(row), std::string(width + 2 - left(row).size(), ' '), row.help, "\n");
  }
  return out;
}

Status bad(std::string message) {
  return Status(Code::InvalidArgument, std::move(message));
}

const OptionRow* find_row(const Usage& usage, std::string_view name) {
  if (name == "-n" || name == "-np") name = "--np";
  const auto found = std::ranges::find(usage.options, name, &OptionRow::name);
  return found == usage.options.end() ? nullptr : &*found;
}

// "-np4" and "-n4", as other launchers take them.
std::string glued_number(std::string_view word) {
  for (const std::string_view name : {"-np", "-n"}) {
    const std::string_view rest = word.substr(std::min(name.size(), word.size()));
    const bool digits = std::ranges::all_of(rest, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (word.starts_with(name) && !rest.empty() && digits) return std::string(rest);
  }
  return "";
}

Status no_such_option(const Usage& usage, const std::string& word) {
  const std::string help = cat("`", usage.command, " --help` lists the options");
  if (!word.starts_with('-')) return bad(cat("'", word, "' is not expected here; ", help));
  const std::string number = find_row(usage, "--np") == nullptr ? "" : glued_number(word);
  return bad(cat("there is no option ", word, "; ", number.empty() ? help : cat("write -np ", number)));
}

}  // namespace

std::string shown_name(const OptionRow& row) {
  return row.name == "--np" ? "-np" : row.name;
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Arguments::texts(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

Result<Arguments> parse_arguments(const Usage& usage, Words words) {
  Arguments out;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-h" || word == "--help") {
      out.help_ = help_text(usage);
      continue;
    }
    const size_t equals = word.find('=');
    const OptionRow* row = find_row(usage, std::string_view(word).substr(0, equals));
    if (row == nullptr) return no_such_option(usage, word);
    const std::string name = shown_name(*row);
    const bool joined = equals != std::string::npos;
    if (row->value.empty() && joined) return bad(cat(word, ": ", name, " takes no value; write it alone"));
    auto& values = out.values_[row->name];
    if (row->value.empty()) continue;
    if (!joined && i + 1 == words.size()) {
      return bad(cat(name, " needs a value, as in ", name, " ", row->value, ": ", row->help));
    }
    values.push_back(joined ? word.substr(equals + 1) : words[++i]);
  }
  return out;
}

}  // namespace ronde::cli
