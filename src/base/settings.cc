// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/edit_distance.h"
#include "base/settings_table.h"

namespace ronde {
namespace {

constexpr std::string_view kPrefix = "RONDE_";

std::optional<size_t> row_of_environment(std::string_view name) {
  const auto rows = setting_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (environment_name(rows[i].name) == name) return i;
  }
  return std::nullopt;
}

std::optional<size_t> row_of_flag(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  const auto rows = setting_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return i;
  }
  return std::nullopt;
}

bool is_identity(std::string_view name) {
  const auto rows = identity_rows();
  return std::any_of(rows.begin(), rows.end(), [&](const IdentityRow& row) { return row.environment == name; });
}

// " did you mean ...?", if some known name is near.
std::string suggestion(std::string_view unknown) {
  std::vector<std::string> known;
  for (const SettingRow& row : setting_rows()) known.push_back(environment_name(row.name));
  for (const IdentityRow& row : identity_rows()) known.emplace_back(row.environment);
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edit_distance(unknown, a) < edit_distance(unknown, b);
  });
  const size_t allowed = (unknown.size() - kPrefix.size()) / 3;  // in a short name a few letters make another name
  if (edit_distance(unknown, *nearest) <= allowed) return cat("did you mean ", *nearest, "?");
  return "`ronde settings` lists those that are known";
}

std::string unknown_warning(std::string_view name) {
  return cat(name, " is no setting of Ronde and has no effect; ", suggestion(name));
}

struct Parsing {
  ParsedSettings out;
  std::string errors;

  void take(size_t row, Origin origin, std::string_view shown, std::string_view value) {
    const Status status = parse_setting(setting_rows()[row].field, value, out.settings);
    if (status.ok()) {
      out.origins[row] = origin;
      return;
    }
    fail(cat(shown, value.empty() ? "''" : value, ": ", status.message()));
  }
  void fail(std::string_view error) { errors += cat(errors.empty() ? "" : "\n", error); }
};

}  // namespace

Result<ParsedSettings> parse_settings(std::span<const std::pair<std::string, std::string>> environment,
                                      std::span<const std::pair<std::string, std::string>> flags) {
  Parsing parsing;
  parsing.out.origins.assign(setting_rows().size(), Origin::Default);
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kPrefix) || is_identity(name)) continue;
    if (const auto row = row_of_environment(name); !row) {
      parsing.out.warnings.push_back(unknown_warning(name));
    } else if (!value.empty()) {
      parsing.take(*row, Origin::Environment, cat(name, "="), value);
    }
  }
  for (const auto& [name, value] : flags) {
    if (const auto row = row_of_flag(name)) {
      parsing.take(*row, Origin::Flag, cat(flag_name(setting_rows()[*row].name), " "), value);
    } else {
      parsing.fail(cat("--", name, ": no such setting"));
    }
  }
  if (!parsing.errors.empty()) return Status(Code::InvalidArgument, parsing.errors);
  return std::move(parsing.out);
}

NameValues settings_environment(const ParsedSettings& parsed) {
  NameValues out;
  const auto rows = setting_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (parsed.origins[i] == Origin::Default) continue;
    out.emplace_back(environment_name(rows[i].name), format_setting(rows[i].field, parsed.settings));
  }
  return out;
}

std::string environment_name(std::string_view setting) {
  std::string out(kPrefix);
  for (const unsigned char c : setting) out.push_back(static_cast<char>(std::toupper(c)));
  return out;
}

std::string flag_name(std::string_view setting) {
  std::string out = cat("--", setting);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

}  // namespace ronde
