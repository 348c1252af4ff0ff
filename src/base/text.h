// SPDX-License-Identifier: Apache-2.0
// The texts of messages, without the compile time of a format library. cat(): pieces joined into one string;
// listed(): words as a sentence lists them.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace ronde {
namespace text_detail {

inline void append(std::string& out, std::string_view piece) {
  out.append(piece);
}
inline void append(std::string& out, const char* piece) {
  out.append(piece);
}
inline void append(std::string& out, char piece) {
  out.push_back(piece);
}
inline void append(std::string& out, bool piece) {
  out.append(piece ? "true" : "false");
}

template <class T>
requires(std::integral<T> || std::floating_point<T>) void append(std::string& out, T piece) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, piece).ptr;
  out.append(digits, end);
}

}  // namespace text_detail

template <class... Pieces>
[[nodiscard]] std::string cat(const Pieces&... pieces) {
  std::string out;
  (text_detail::append(out, pieces), ...);
  return out;
}

// "a", "a and b", "a, b and c", "a, b and 7 more"
inline std::string listed(const std::vector<std::string>& words) {
  constexpr size_t kMostListed = 8;
  const size_t shown = words.size() > kMostListed ? kMostListed - 1 : words.size();
  std::string out;
  for (size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == words.size();
    out += cat(i == 0 ? "" : is_last ? " and " : ", ", words[i]);
  }
  return shown == words.size() ? out : cat(out, " and ", words.size() - shown, " more");
}

}  // namespace ronde
