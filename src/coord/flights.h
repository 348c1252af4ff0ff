// SPDX-License-Identifier: Apache-2.0
// Flights: a rank's own submissions in one set that wait for a decision. At most one under a key.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "coord/member.h"

namespace ronde::coord {

struct Flight {
  Ticket ticket = 0;
  Signature signature;
};

class Flights {
 public:
  bool has(std::string_view name) const { return named_.contains(name); }
  void add(const std::string& name, const Flight& flight, bool more);
  void add(uint64_t number, const Flight& flight, bool more);
  // Out of flight; ticket 0 if there is none.
  Flight land(std::string_view name);
  Flight land(uint64_t number);

  // In flight, submitted with `more` and not flushed since.
  bool is_unflushed(Ticket ticket) const { return unflushed_.contains(ticket); }
  void on_flush() { unflushed_.clear(); }

  size_t size() const { return named_.size() + unnamed_.size(); }
  struct Ended {
    Ticket ticket;
    std::string what;  // "allreduce 'x'"
  };
  // All of them, which are in flight no more.
  std::vector<Ended> clear();

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, Flight, TextHash, std::equal_to<>> named_;
  std::unordered_map<uint64_t, Flight> unnamed_;
  std::unordered_set<Ticket> unflushed_;
};

}  // namespace ronde::coord
