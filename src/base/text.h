// SPDX-License-Identifier: Apache-2.0
// cat(): the pieces of a message joined into one string, without the compile time of a format library.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

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

}  // namespace ronde
