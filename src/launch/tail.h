// SPDX-License-Identifier: Apache-2.0
// Tail: the last lines that a rank wrote, on both its streams, for the report of its failure. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ronde::launch {

class Tail {
 public:
  static constexpr size_t kLines = 20;
  static constexpr size_t kKeptBytes = 32 * 1024;

  void feed(int stream, std::string_view bytes);
  // Without line ends; of a line that was overwritten (\r) only what was seen last.
  std::vector<std::string> lines() const;

 private:
  std::string text_;
  int stream_ = -1;
};

}  // namespace ronde::launch
