// SPDX-License-Identifier: Apache-2.0
// One value of a setting: from text, to text, and what may be written.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/settings_table.h"

namespace ronde {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// The whole text as a number.
template <class T>
bool parse_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

constexpr struct {
  char suffix;
  size_t bytes;
} kSuffixes[] = {{'G', size_t{1} << 30}, {'M', size_t{1} << 20}, {'K', size_t{1} << 10}};

// A size beyond size_t counts as the greatest: it is out of any range.
bool parse_size(std::string_view text, size_t& out) {
  size_t unit = 1;
  for (const auto& row : kSuffixes) {
    if (text.empty() || std::toupper(static_cast<unsigned char>(text.back())) != row.suffix) continue;
    unit = row.bytes;
    text.remove_suffix(1);
    break;
  }
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); })) {
    return false;
  }
  size_t number = 0;
  if (!parse_number(text, number) || number > SIZE_MAX / unit) number = SIZE_MAX / unit;
  out = number * unit;
  return true;
}

std::string format_size(size_t bytes) {
  for (const auto& row : kSuffixes) {
    if (bytes != 0 && bytes % row.bytes == 0) return cat(bytes / row.bytes, row.suffix);
  }
  return cat(bytes);
}

double in_units(Duration span, Duration unit) {
  return static_cast<double>(span.count()) / unit.count();
}

std::string_view unit_name(Duration unit) {
  return unit == std::chrono::seconds(1) ? "seconds" : "milliseconds";
}

std::string names_joined(std::span<const std::string_view> names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) out += cat(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return out;
}

struct Parse {
  std::string_view text;
  Settings& into;

  // Empty: good. Otherwise what is wrong.
  std::string_view operator()(const DurationField& field) const {
    double number = 0;
    if (!parse_number(text, number) || !std::isfinite(number)) return "not a number";
    if (number < in_units(field.least, field.unit) || number > in_units(field.most, field.unit)) return "out of range";
    into.*field.member = Duration(std::llround(number * static_cast<double>(field.unit.count())));
    return {};
  }
  std::string_view operator()(const SizeField& field) const {
    size_t bytes = 0;
    if (!parse_size(text, bytes)) return "not a size";
    if (bytes < field.least || bytes > field.most) return "out of range";
    if (bytes % field.multiple_of != 0) return "not a multiple";
    into.*field.member = bytes;
    return {};
  }
  std::string_view operator()(const IntField& field) const {
    int number = 0;
    if (!parse_number(text, number)) return "not a whole number";
    if (number < field.least || number > field.most) return "out of range";
    into.*field.member = number;
    return {};
  }
  std::string_view operator()(const TextField& field) const {
    into.*field.member = std::string(text);
    return {};
  }
  template <class Enum>
  std::string_view operator()(const ChoiceField<Enum>& field) const {
    const auto found = std::find(field.names.begin(), field.names.end(), lower(text));
    if (found == field.names.end()) return "not one of the choices";
    into.*field.member = static_cast<Enum>(found - field.names.begin());
    return {};
  }
};

struct Format {
  const Settings& settings;
  std::string operator()(const DurationField& field) const { return cat(in_units(settings.*field.member, field.unit)); }
  std::string operator()(const SizeField& field) const { return format_size(settings.*field.member); }
  std::string operator()(const IntField& field) const { return cat(settings.*field.member); }
  std::string operator()(const TextField& field) const { return settings.*field.member; }
  template <class Enum>
  std::string operator()(const ChoiceField<Enum>& field) const {
    return std::string(field.names[static_cast<size_t>(settings.*field.member)]);
  }
};

}  // namespace

Status parse_setting(const SettingField& field, std::string_view text, Settings& into) {
  const std::string_view wrong = std::visit(Parse{text, into}, field);
  if (wrong.empty()) return {};
  return Status(Code::InvalidArgument, cat(wrong, "; expected ", expected_of(field)));
}

std::string format_setting(const SettingField& field, const Settings& settings) {
  return std::visit(Format{settings}, field);
}

std::string expected_of(const SettingField& field) {
  return std::visit(Overloaded{
                        [](const DurationField& f) {
                          return cat("a number of ", unit_name(f.unit), " from ", in_units(f.least, f.unit), " to ",
                                     in_units(f.most, f.unit));
                        },
                        [](const SizeField& f) {
                          const size_t example = Settings{}.*f.member;
                          const std::string multiple = f.multiple_of == 1 ? "" : cat(", a multiple of ", f.multiple_of);
                          return cat("a number of bytes such as ", example, " or ", format_size(example), ", from ",
                                     format_size(f.least), " to ", format_size(f.most), multiple);
                        },
                        [](const IntField& f) { return cat("a whole number from ", f.least, " to ", f.most); },
                        [](const TextField& f) { return std::string(f.expected); },
                        [](const auto& choice) { return names_joined(choice.names); },
                    },
                    field);
}

std::string_view unit_of(const SettingField& field) {
  if (const auto* duration = std::get_if<DurationField>(&field)) {
    return duration->unit == std::chrono::seconds(1) ? "s" : "ms";
  }
  return std::holds_alternative<SizeField>(field) ? "B" : "";
}

}  // namespace ronde
