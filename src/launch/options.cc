// SPDX-License-Identifier: Apache-2.0
#include "launch/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>

namespace ronde::launch {
namespace {

constexpr std::string_view kOwnVariables[] = {"RONDE_RANK",       "RONDE_SIZE",  "RONDE_LOCAL_RANK",
                                              "RONDE_LOCAL_SIZE", "RONDE_STORE", "RONDE_BROKER",
                                              "RONDE_KEY_FILE",   "RONDE_JOB",   "RONDE_RUN_DIR"};

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

Status bad(std::string message) {
  return Status(Code::InvalidArgument, std::move(message));
}

// An empty value is seen as one.
std::string shown(const std::string& value) {
  return value.empty() ? "''" : value;
}

Result<int> check_np(const std::optional<std::string>& text) {
  if (!text) return bad("-np is missing: say how many ranks to start, as in: ronde run -np 2 python train.py");
  const auto np = parse_number<int>(*text);
  if (!np || *np < 1 || *np > kMaxRanks) {
    return bad(cat("-np ", shown(*text), ": the number of ranks must be a whole number from 1 to ", kMaxRanks));
  }
  return *np;
}

Result<int> check_lifeline(const std::optional<std::string>& text) {
  if (!text) return -1;
  const auto descriptor = parse_number<int>(*text);
  if (descriptor && *descriptor > 2) return *descriptor;
  return bad(cat("--lifeline ", shown(*text), ": it must be the number of an open descriptor above 2"));
}

Result<Duration> check_grace(const std::optional<std::string>& text) {
  if (!text) return RunOptions{}.grace;
  const auto seconds = parse_number<double>(*text);
  if (!seconds || !std::isfinite(*seconds) || *seconds < 0 || *seconds > 1e6) {
    return bad(cat("--grace ", shown(*text), ": the time must be a number of seconds from 0 to 1000000"));
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
}

Result<std::pair<std::string, std::string>> check_env(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == text.npos) return bad(cat("--env ", shown(text), ": must be NAME=VALUE"));
  auto name = text.substr(0, equals);
  if (std::find(std::begin(kOwnVariables), std::end(kOwnVariables), name) != std::end(kOwnVariables)) {
    return bad(cat("--env ", text, ": ", name, " is given by ronde itself to each rank"));
  }
  return std::pair(std::move(name), text.substr(equals + 1));
}

}  // namespace

Result<RunOptions> check_run(const RunTexts& texts) {
  RunOptions out;
  RONDE_ASSIGN(out.np, check_np(texts.np));
  RONDE_ASSIGN(out.grace, check_grace(texts.grace));
  RONDE_ASSIGN(out.lifeline, check_lifeline(texts.lifeline));
  out.scratch = texts.scratch.value_or("");
  for (const auto& text : texts.env) {
    RONDE_ASSIGN(auto entry, check_env(text));
    out.env.push_back(std::move(entry));
  }
  if (texts.command.empty() || texts.command[0].empty()) {
    return bad("the command is missing: say what each rank runs, as in: ronde run -np 2 python train.py");
  }
  out.command = texts.command;
  out.prefix = !texts.no_prefix;
  if (texts.output_dir && texts.output_dir->empty()) {
    return bad("--output-dir '': name a folder, or leave the option out to see the output here");
  }
  out.output_dir = texts.output_dir.value_or("");
  return out;
}

SplitArguments split_command(std::span<const std::string> arguments,
                             const std::function<bool(std::string_view option)>& takes_value) {
  SplitArguments out;
  size_t i = 0;
  for (; i < arguments.size(); ++i) {
    std::string word = arguments[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    if (word == "-np" || word.starts_with("-np=")) word.insert(0, "-");
    const bool has_value = word.find('=') != word.npos || !takes_value(word);
    out.options.push_back(std::move(word));
    if (!has_value && i + 1 < arguments.size()) out.options.push_back(arguments[++i]);
  }
  const auto command = arguments.subspan(i);
  out.command.assign(command.begin(), command.end());
  return out;
}

}  // namespace ronde::launch
