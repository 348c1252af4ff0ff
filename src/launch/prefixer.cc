// SPDX-License-Identifier: Apache-2.0
#include "launch/prefixer.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace ronde::launch {
namespace {

// Bytes up to and including the first line end; 0 if there is none.
size_t line_bytes(std::string_view bytes) {
  const auto* newline = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
  const size_t before = newline == nullptr ? bytes.size() : static_cast<size_t>(newline - bytes.data());
  const auto* cr = static_cast<const char*>(std::memchr(bytes.data(), '\r', before));
  if (cr != nullptr) return static_cast<size_t>(cr - bytes.data()) + 1;
  return newline == nullptr ? 0 : before + 1;
}

}  // namespace

int Prefixer::add_source(std::string_view name) {
  sources_.push_back({.prefix = cat(name, " "), .continued = cat(name, "+ "), .held = {}});
  return static_cast<int>(sources_.size()) - 1;
}

void Prefixer::feed(int source, std::string_view bytes, Time now, std::string& out) {
  Source& s = sources_[source];
  while (!bytes.empty()) {
    const size_t length = line_bytes(bytes);
    if (length == 0) return hold(source, bytes, now, out);
    if (s.held.empty()) {
      show(source, bytes.substr(0, length), out);
    } else {
      s.held += bytes.substr(0, length);
      show_held(source, out);
    }
    bytes.remove_prefix(length);
  }
}

void Prefixer::hold(int source, std::string_view bytes, Time now, std::string& out) {
  Source& s = sources_[source];
  if (open_ == source) return show(source, bytes, out);
  if (s.held.empty()) s.due = now + kPatience;
  s.held += bytes;
  if (s.held.size() > kMaxHeld) show_held(source, out);
}

void Prefixer::show_held(int source, std::string& out) {
  Source& s = sources_[source];
  if (!s.held.empty()) show(source, s.held, out);
  s.held.clear();
  s.due = kNever;
}

// `piece` has at most one line end, as its last byte.
void Prefixer::show(int source, std::string_view piece, std::string& out) {
  Source& s = sources_[source];
  const bool rest_of_line_end = after_cr_ == source && piece == "\n";
  if (open_ != source && !rest_of_line_end) {
    start_line(out);
    out += s.interrupted ? s.continued : s.prefix;
    s.interrupted = false;
  }
  out += piece;
  const bool ended = piece.back() == '\n' || piece.back() == '\r';
  open_ = ended ? -1 : source;
  after_cr_ = piece.back() == '\r' ? source : -1;
}

void Prefixer::show_due(Time now, std::string& out) {
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].due <= now) show_held(static_cast<int>(i), out);
  }
}

Time Prefixer::next_deadline() const {
  Time next = kNever;
  for (const Source& s : sources_) next = std::min(next, s.due);
  return next;
}

void Prefixer::end(int source, std::string& out) {
  show_held(source, out);
}

void Prefixer::start_line(std::string& out) {
  if (open_ < 0) return;
  sources_[open_].interrupted = true;
  open_ = -1;
  out += '\n';
}

}  // namespace ronde::launch
