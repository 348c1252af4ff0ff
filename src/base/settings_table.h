// SPDX-License-Identifier: Apache-2.0
// The rows of the settings. For base/settings*.cc only.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "base/settings.h"

namespace ronde {

struct DurationField {
  Duration Settings::*member;
  Duration unit;  // of the plain number that the user writes
  Duration least;
  Duration most;
};
struct SizeField {
  size_t Settings::*member;
  size_t least;
  size_t most;
  size_t multiple_of = 1;
};
struct IntField {
  int Settings::*member;
  int least;
  int most;
};
struct TextField {
  std::string Settings::*member;
  std::string_view expected;
};
template <class Enum>
struct ChoiceField {
  Enum Settings::*member;
  std::span<const std::string_view> names;  // by value
};

using SettingField = std::variant<DurationField, SizeField, IntField, TextField, ChoiceField<TransportChoice>,
                                  ChoiceField<LogLevel>, ChoiceField<Spin>>;

struct SettingRow {
  std::string_view name;
  SettingField field;
  std::string_view doc;
};

struct IdentityRow {
  std::string_view environment;
  std::string_view doc;
};

std::span<const SettingRow> setting_rows();
std::span<const IdentityRow> identity_rows();

// Of one value (settings_value.cc). The error says what is wrong and what was expected, without the name.
Status parse_setting(const SettingField& field, std::string_view text, Settings& into);
std::string format_setting(const SettingField& field, const Settings& settings);
std::string expected_of(const SettingField& field);
std::string_view unit_of(const SettingField& field);  // "s", "ms", "B" or ""

std::string environment_name(std::string_view setting);  // RONDE_BATCH_BYTES
std::string flag_name(std::string_view setting);         // --batch-bytes

}  // namespace ronde
