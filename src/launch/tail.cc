// SPDX-License-Identifier: Apache-2.0
#include "launch/tail.h"

#include <algorithm>

namespace ronde::launch {

void Tail::feed(int stream, std::string_view bytes) {
  if (bytes.empty()) return;
  const bool other = stream_ != -1 && stream_ != stream;
  stream_ = stream;
  if (other && !text_.empty() && text_.back() != '\n') text_ += '\n';
  if (bytes.size() > kKeptBytes) bytes.remove_prefix(bytes.size() - kKeptBytes);
  if (text_.size() + bytes.size() > 2 * kKeptBytes) text_.erase(0, text_.size() - std::min(text_.size(), kKeptBytes));
  text_ += bytes;
}

std::vector<std::string> Tail::lines() const {
  std::string_view rest = text_;
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  std::vector<std::string> out;
  while (!rest.empty() && out.size() < kLines) {
    const auto begin = rest.rfind('\n') + 1;  // npos + 1 is 0
    auto line = rest.substr(begin);
    rest = rest.substr(0, begin == 0 ? 0 : begin - 1);
    while (line.ends_with('\r')) line.remove_suffix(1);
    out.emplace_back(line.substr(line.rfind('\r') + 1));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace ronde::launch
