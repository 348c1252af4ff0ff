// SPDX-License-Identifier: Apache-2.0
// Prefixer: the output of several ranks on one console. Pure: bytes and times in, bytes out.
//
// Idea: what a source writes goes out in whole lines, each behind the source's prefix ("[0] "); a line ends with \n, \r
// or \r\n. An unfinished line is held for kPatience, so that a line written in pieces stays whole, and then shown as it
// is. If another source writes while such a line stands open, a \n is put in, and when the first one goes on, its text
// carries the mark of a continuation ("[0]+ "). Nothing else is added, removed or looked at: bytes that are no text
// pass through.
//
// So each source's bytes can be recovered: drop the prefixes, and before a mark also the line end that preceded it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace ronde::launch {

class Prefixer {
 public:
  static constexpr Duration kPatience = std::chrono::milliseconds(100);
  static constexpr size_t kMaxHeld = 64 * 1024;

  // Gives the number of the source.
  int add_source(std::string_view name);
  void feed(int source, std::string_view bytes, Time now, std::string& out);
  // Shows unfinished lines that were held long enough.
  void show_due(Time now, std::string& out);
  Time next_deadline() const;
  // The source has ended: nothing is held any longer.
  void end(int source, std::string& out);
  // For text of the caller's own: makes the console stand at the start of a line.
  void start_line(std::string& out);

 private:
  struct Source {
    std::string prefix;
    std::string continued;
    std::string held;
    Time due = kNever;
    bool interrupted = false;
  };

  void hold(int source, std::string_view bytes, Time now, std::string& out);
  void show_held(int source, std::string& out);
  void show(int source, std::string_view piece, std::string& out);

  std::vector<Source> sources_;
  int open_ = -1;      // whose unfinished line stands on the console
  int after_cr_ = -1;  // whose line was the last one and ended with \r: a \n belongs to it
};

}  // namespace ronde::launch
