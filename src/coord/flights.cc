// SPDX-License-Identifier: Apache-2.0
#include "coord/flights.h"

#include <utility>

namespace ronde::coord {

void Flights::add(const std::string& name, const Flight& flight, bool more) {
  named_.emplace(name, flight);
  if (more) unflushed_.insert(flight.ticket);
}

void Flights::add(uint64_t number, const Flight& flight, bool more) {
  unnamed_.emplace(number, flight);
  if (more) unflushed_.insert(flight.ticket);
}

Flight Flights::land(std::string_view name) {
  const auto it = named_.find(name);
  if (it == named_.end()) return {};
  const Flight out = it->second;
  named_.erase(it);
  unflushed_.erase(out.ticket);
  return out;
}

Flight Flights::land(uint64_t number) {
  const auto it = unnamed_.find(number);
  if (it == unnamed_.end()) return {};
  const Flight out = it->second;
  unnamed_.erase(it);
  unflushed_.erase(out.ticket);
  return out;
}

std::vector<Flights::Ended> Flights::clear() {
  std::vector<Ended> out;
  for (const auto& [name, flight] : named_) out.push_back({flight.ticket, describe(flight.signature, name, 0)});
  for (const auto& [number, flight] : unnamed_) out.push_back({flight.ticket, describe(flight.signature, "", number)});
  named_.clear();
  unnamed_.clear();
  unflushed_.clear();
  return out;
}

}  // namespace ronde::coord
