// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <string_view>

#include "cli/bench.h"

namespace ronde::cli {
namespace {

constexpr int64_t kElement = 4;
constexpr int64_t kMost = int64_t{1} << 40;

Result<int64_t> parse_size(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  constexpr std::string_view kSuffixes = "KMG";
  int shift = 0;
  if (suffix.size() == 1 && kSuffixes.find(suffix[0]) != std::string_view::npos) {
    shift = 10 * static_cast<int>(kSuffixes.find(suffix[0]) + 1);
    suffix = {};
  }
  const bool fits = error == std::errc() && suffix.empty() && value > 0 && value <= (kMost >> shift);
  if (fits && (value << shift) % kElement == 0) return value << shift;
  return Status(Code::InvalidArgument,
                cat("'", text, "' is not a size: expected bytes, a multiple of 4, such as 8, 256K or 64M"));
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t next = text.find(at);
    out.push_back(text.substr(0, next));
    if (next == std::string_view::npos) return out;
    text.remove_prefix(next + 1);
  }
}

}  // namespace

Result<std::vector<int64_t>> parse_sizes(const std::string& text) {
  std::vector<int64_t> out;
  const std::vector<std::string_view> range = split(text, ':');
  if (range.size() == 2) {
    RONDE_ASSIGN(const int64_t from, parse_size(range[0]));
    RONDE_ASSIGN(const int64_t to, parse_size(range[1]));
    if (from > to) return Status(Code::InvalidArgument, cat("'", text, "': the first size is larger than the last"));
    for (int64_t size = from; size < to; size *= 4) out.push_back(size);
    out.push_back(to);
    return out;
  }
  for (const std::string_view word : split(text, ',')) {
    RONDE_ASSIGN(const int64_t size, parse_size(word));
    out.push_back(size);
  }
  return out;
}

}  // namespace ronde::cli
