// SPDX-License-Identifier: Apache-2.0
#include "coord/ready_queue.h"

#include <algorithm>
#include <utility>

namespace ronde::coord {
namespace {
constexpr Duration kLongestHold = std::chrono::hours(1);
}  // namespace

void ReadyQueue::push(Unit& unit) {
  units_.push_back(&unit);
  if (unit.held.empty()) {
    ++released_;
  } else {
    held_bytes_ += unit.bytes;
  }
}

void ReadyQueue::on_released(const Unit& unit) {
  ++released_;
  held_bytes_ -= unit.bytes;
}

void ReadyQueue::remove(const Unit& unit) {
  if (std::erase(units_, &unit) == 0) return;
  if (unit.held.empty()) {
    --released_;
  } else {
    held_bytes_ -= unit.bytes;
  }
}

void ReadyQueue::on_flush(Rank rank) {
  flushed_.add(rank);
  if (!flushed_.covers(members_)) return;
  flushed_.clear();
  hold_ = limits_.hold;
}

void ReadyQueue::clear() {
  units_.clear();
  released_ = 0;
  held_bytes_ = 0;
}

bool ReadyQueue::hold_is_over(Time now) const {
  const auto held = std::find_if(units_.begin(), units_.end(), [](const Unit* unit) { return !unit->held.empty(); });
  return held != units_.end() && now >= time_after((*held)->ready_at, hold_);
}

std::vector<Unit*> ReadyQueue::take_due(Time now) {
  if (units_.empty()) return {};
  const bool is_full = limits_.cut_early && held_bytes_ >= limits_.batch_bytes && released_ < units_.size();
  const bool is_old = limits_.cut_early && !is_full && hold_is_over(now);
  if (is_old && hold_ < kLongestHold) hold_ *= 2;
  if (is_full || is_old || released_ == units_.size()) {
    released_ = 0;
    held_bytes_ = 0;
    return std::exchange(units_, {});
  }
  std::vector<Unit*> out;
  if (released_ == 0) return out;
  const auto is_held = [](const Unit* unit) { return !unit->held.empty(); };
  const auto middle = std::stable_partition(units_.begin(), units_.end(), is_held);
  out.assign(middle, units_.end());
  units_.erase(middle, units_.end());
  released_ = 0;
  return out;
}

Time ReadyQueue::next_due() const {
  if (released_ > 0) return Time::min();
  if (!limits_.cut_early || units_.empty()) return kNever;
  if (held_bytes_ >= limits_.batch_bytes) return Time::min();
  return time_after(units_.front()->ready_at, hold_);
}

}  // namespace ronde::coord
