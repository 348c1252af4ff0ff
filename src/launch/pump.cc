// SPDX-License-Identifier: Apache-2.0
#include "launch/pump.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace ronde::launch {

// A source of a prefixer is a rank on two consoles, and a rank's stream on one.
Pump::Pump(Options options, Write write) : options_(options), write_(std::move(write)), tails_(options.ranks) {
  for (int stream = 1; stream <= 2; ++stream) {
    for (int rank = 0; rank < options_.ranks; ++rank) prefixers_[console(stream)].add_source(cat("[", rank, "]"));
  }
}

void Pump::output(int rank, int stream, std::string_view bytes, Time now) {
  tails_[rank].feed(stream, bytes);
  const size_t target = static_cast<size_t>(stream) - 1;
  if (options_.style == Style::Files) return write_(file_target(rank, stream), std::string(bytes), bytes.size());
  if (options_.style == Style::Plain) return pass(target, std::string(bytes), bytes.size());
  std::string out;
  const int source = options_.one_console && stream == 2 ? options_.ranks + rank : rank;
  prefixers_[console(stream)].feed(source, bytes, now, out);
  write_(target, std::move(out), bytes.size());
}

void Pump::pass(size_t target, std::string bytes, size_t credit) {
  if (!bytes.empty()) line_open_[target] = bytes.back() != '\n';
  write_(target, std::move(bytes), credit);
}

void Pump::close(int rank, int stream) {
  if (options_.style != Style::Prefixed) return;
  std::string out;
  const int source = options_.one_console && stream == 2 ? options_.ranks + rank : rank;
  prefixers_[console(stream)].end(source, out);
  if (!out.empty()) write_(static_cast<size_t>(stream) - 1, std::move(out), 0);
}

void Pump::tick(Time now) {
  for (size_t i = 0; i < 2; ++i) {
    if (prefixers_[i].next_deadline() > now) continue;
    std::string out;
    prefixers_[i].show_due(now, out);
    write_(i, std::move(out), 0);
  }
}

Time Pump::next_deadline() const {
  return std::min(prefixers_[0].next_deadline(), prefixers_[1].next_deadline());
}

void Pump::say(std::string_view line) {
  std::string out;
  prefixers_[console(2)].start_line(out);
  if (std::exchange(line_open_[console(2)], false)) out = "\n";
  write_(1, cat(out, line, "\n"), 0);
}

}  // namespace ronde::launch
