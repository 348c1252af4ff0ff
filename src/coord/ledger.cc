// SPDX-License-Identifier: Apache-2.0
#include "coord/ledger.h"

#include <algorithm>
#include <utility>

namespace ronde::coord {
namespace {

std::vector<Key> keys_of(const Unit& unit) {
  std::vector<Key> out;
  for (const BatchEntry& entry : unit.entries) out.push_back(entry.key);
  return out;
}

}  // namespace

Ledger::Ledger(std::vector<Rank> members) : members_(std::move(members)), member_set_(members_) {}

std::vector<Rank> Ledger::missing(const Unit& unit) const {
  std::vector<Rank> out;
  for (const Rank rank : members_) {
    if (!unit.reported.has(rank)) out.push_back(rank);
  }
  return out;
}

size_t Ledger::index_of(Rank rank) const {
  return static_cast<size_t>(std::lower_bound(members_.begin(), members_.end(), rank) - members_.begin());
}

bool Ledger::has_seen(const Generation& generation, Rank rank) {
  return generation.unit != nullptr ? generation.unit->reported.has(rank) : generation.seen.has(rank);
}

const Ledger::Generation* Ledger::next_of(Rank rank, const Key& key) const {
  const auto slot = slots_.find(key);
  if (slot == slots_.end()) return nullptr;
  const auto it = std::find_if(slot->second.begin(), slot->second.end(),
                               [&](const Generation& generation) { return !has_seen(generation, rank); });
  return it == slot->second.end() ? nullptr : &*it;
}

Result<Ledger::Place> Ledger::place(Rank rank, const Key& key) const {
  const auto slot = slots_.find(key);
  if (slot == slots_.end()) return Place{};
  for (const Generation& generation : slot->second) {
    if (!has_seen(generation, rank)) return Place{generation.unit, generation.failure.get()};
    if (generation.unit != nullptr) {
      return Status(Code::Internal, cat("rank ", rank, " submits an operation that it has in flight"));
    }
  }
  return Place{};
}

Unit& Ledger::open(Rank first, std::span<const Entry> call, Time now) {
  units_.push_back(std::make_unique<Unit>());
  Unit& unit = *units_.back();
  unit.self = std::prev(units_.end());
  unit.first = first;
  unit.first_report = now;
  unit.entries.resize(call.size());
  for (size_t i = 0; i < call.size(); ++i) {
    unit.entries[i].key = call[i].key;
    unit.entries[i].signature = call[i].signature;
    if (call[i].first_dim >= 0) unit.entries[i].first_dims.resize(members_.size());
    Generation generation;
    generation.unit = &unit;
    slots_[call[i].key].push_back(std::move(generation));
  }
  return unit;
}

void Ledger::join(Unit& unit, Rank rank, std::span<const Entry> call) {
  unit.reported.add(rank);
  for (size_t i = 0; i < call.size(); ++i) {
    // A call of another signature, with which the unit is about to fail, may have a first dimension where the unit has
    // none.
    auto& first_dims = unit.entries[i].first_dims;
    if (call[i].first_dim >= 0 && !first_dims.empty()) first_dims[index_of(rank)] = call[i].first_dim;
  }
}

void Ledger::close(Unit& unit) {
  for (const BatchEntry& entry : unit.entries) {
    const auto slot = slots_.find(entry.key);
    std::erase_if(slot->second, [&](const Generation& generation) { return generation.unit == &unit; });
    if (slot->second.empty()) slots_.erase(slot);
  }
  units_.erase(unit.self);
}

// The unit's generations become failed ones, and the unit is gone.
void Ledger::bury(Unit& unit, const std::shared_ptr<Failure>& failure) {
  for (const BatchEntry& entry : unit.entries) {
    failure->keys.push_back(entry.key);
    for (Generation& generation : slots_[entry.key]) {
      if (generation.unit == &unit) generation = Generation{nullptr, failure, unit.reported};
    }
  }
  if (unit.entries.size() > 1) failure->groupers.add_all(unit.reported);
  units_.erase(unit.self);
}

// Ranks that submitted groups have seen every name of the failure; generations that all members have seen are
// forgotten.
void Ledger::settle(const Failure& failure) {
  for (const Key& key : failure.keys) {
    const auto slot = slots_.find(key);
    if (slot == slots_.end()) continue;
    for (Generation& generation : slot->second) {
      if (generation.failure.get() == &failure && !key.unnamed) generation.seen.add_all(failure.groupers);
    }
    std::erase_if(slot->second, [&](const Generation& generation) {
      return generation.unit == nullptr && generation.seen.covers(member_set_);
    });
    if (slot->second.empty()) slots_.erase(slot);
  }
}

std::shared_ptr<Failure> Ledger::make_failure(const Status& status) {
  ++last_failure_;
  return std::make_shared<Failure>(Failure{last_failure_, last_failure_, status, {}, {}});
}

Ended Ledger::fail(Unit& unit, const Status& status) {
  Ended out{keys_of(unit), unit.reported.ranks()};
  const auto failure = make_failure(status);
  bury(unit, failure);
  settle(*failure);
  return out;
}

std::shared_ptr<Failure> Ledger::oldest_met(Rank rank, std::span<const Entry> call) const {
  std::shared_ptr<Failure> out;
  for (const Entry& entry : call) {
    const Generation* generation = next_of(rank, entry.key);
    if (generation == nullptr || generation->failure == nullptr) continue;
    if (out == nullptr || generation->failure->serial < out->serial) out = generation->failure;
  }
  return out;
}

// The oldest failure that the call meets, and those it meets that fell with that one at one blow.
std::vector<std::shared_ptr<Failure>> Ledger::absorbers(Rank rank, std::span<const Entry> call) const {
  std::vector<std::shared_ptr<Failure>> out;
  if (auto oldest = oldest_met(rank, call)) out.push_back(std::move(oldest));
  for (const Entry& entry : call) {
    const Generation* generation = next_of(rank, entry.key);
    if (generation == nullptr || generation->failure == nullptr) continue;
    const bool is_new = std::find(out.begin(), out.end(), generation->failure) == out.end();
    if (is_new && generation->failure->blow == out.front()->blow) out.push_back(generation->failure);
  }
  return out;
}

std::vector<Unit*> Ledger::struck_by(Rank rank, std::span<const Entry> call) const {
  std::vector<Unit*> out;
  const bool is_absorbed = oldest_met(rank, call) != nullptr;
  for (const Entry& entry : call) {
    if (is_absorbed && !entry.key.unnamed) continue;
    const Generation* generation = next_of(rank, entry.key);
    if (generation == nullptr || generation->unit == nullptr) continue;
    if (std::find(out.begin(), out.end(), generation->unit) == out.end()) out.push_back(generation->unit);
  }
  return out;
}

// The rank's use of `key` is consumed by a generation of one of the failures; if none has one, by a new one of the
// first.
void Ledger::absorb(Rank rank, const Key& key, std::span<const std::shared_ptr<Failure>> failures) {
  Generations& generations = slots_[key];
  const auto consumes = [&](const Generation& generation) {
    return !has_seen(generation, rank) &&
           (key.unnamed ? generation.failure != nullptr
                        : std::find(failures.begin(), failures.end(), generation.failure) != failures.end());
  };
  const auto it = std::find_if(generations.begin(), generations.end(), consumes);
  if (it != generations.end()) {
    it->seen.add(rank);
    const auto failure = it->failure;
    settle(*failure);
    return;
  }
  generations.push_back(Generation{nullptr, failures.front(), {}});
  generations.back().seen.add(rank);
  failures.front()->keys.push_back(key);
}

std::vector<Ended> Ledger::fail_call(Rank rank, std::span<const Entry> call, const Status& status) {
  std::vector<Ended> out;
  std::vector<std::shared_ptr<Failure>> failures = absorbers(rank, call);
  for (Unit* unit : struck_by(rank, call)) {
    out.push_back(Ended{keys_of(*unit), unit->reported.ranks()});
    failures.push_back(make_failure(status));
    failures.back()->blow = failures.front()->blow;
    bury(*unit, failures.back());
  }
  out.push_back(Ended{{}, {rank}});
  for (const Entry& entry : call) {
    out.back().keys.push_back(entry.key);
    absorb(rank, entry.key, failures);
  }
  for (const auto& failure : failures) {
    if (call.size() > 1) failure->groupers.add(rank);
    settle(*failure);
  }
  return out;
}

std::vector<Ended> Ledger::fail_everything() {
  std::vector<Ended> out;
  for (const auto& unit : units_) {
    const std::vector<Key> keys = keys_of(*unit);
    std::vector<Rank> ranks = unit->reported.ranks();
    if (out.empty() || out.back().ranks != ranks) out.push_back(Ended{{}, std::move(ranks)});
    out.back().keys.insert(out.back().keys.end(), keys.begin(), keys.end());
  }
  units_.clear();
  slots_.clear();
  return out;
}

}  // namespace ronde::coord
