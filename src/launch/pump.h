// SPDX-License-Identifier: Apache-2.0
// Pump: from what the ranks write to what goes where: the console, prefixed or plain, or a file per rank and stream.
// Keeps the last lines of each rank. Pure, apart from the writer that it is given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/prefixer.h"
#include "launch/tail.h"

namespace ronde::launch {

class Pump {
 public:
  enum class Style : uint8_t { Prefixed, Plain, Files };
  struct Options {
    int ranks = 1;
    Style style = Style::Prefixed;
    bool one_console = false;  // stdout and stderr are the same terminal or file
  };
  // Targets: 0 stdout, 1 stderr, then each rank's stdout and stderr file.
  using Write = std::function<void(size_t target, std::string bytes, size_t credit)>;
  static size_t file_target(int rank, int stream) {
    return 2 + 2 * static_cast<size_t>(rank) + static_cast<size_t>(stream) - 1;
  }

  Pump(Options options, Write write);

  // `stream`: 1 stdout, 2 stderr.
  void output(int rank, int stream, std::string_view bytes, Time now);
  void close(int rank, int stream);
  void tick(Time now);
  Time next_deadline() const;
  // A line of the launcher itself, on stderr.
  void say(std::string_view line);
  std::vector<std::string> last_lines(int rank) const { return tails_[rank].lines(); }

 private:
  size_t console(int stream) const { return options_.one_console ? 0 : static_cast<size_t>(stream) - 1; }
  void pass(size_t target, std::string bytes, size_t credit);

  Options options_;
  Write write_;
  Prefixer prefixers_[2];  // of stdout and stderr; the first is of both if they are one console
  std::vector<Tail> tails_;
  bool line_open_[2] = {false, false};  // plain: the console does not stand at the start of a line
};

}  // namespace ronde::launch
