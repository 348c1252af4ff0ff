// SPDX-License-Identifier: Apache-2.0
#include "engine/control_plane.h"

#include <algorithm>
#include <utility>

namespace ronde::engine {

ControlPlane::ControlPlane(Rank rank, Rank size, bool eager, std::optional<coord::CoordinatorOptions> coordinator,
                           control::Carrier* to_coordinator, std::vector<control::Carrier*> to_ranks)
    : rank_(rank),
      member_(coord::MemberOptions{.rank = rank, .size = size, .eager = eager}),
      to_coordinator_(to_coordinator),
      to_ranks_(std::move(to_ranks)),
      decisions_(to_ranks_.size()) {
  if (coordinator) coordinator_ = std::make_unique<coord::Coordinator>(*coordinator);
}

Result<bool> ControlPlane::pump(Time now, std::vector<coord::Event>& events) {
  if (!coordinator_) return talk_to_coordinator(now, events);
  bool moved = false;
  RONDE_ASSIGN(const bool reported, send_reports(now));
  RONDE_ASSIGN(const bool received, receive_reports(now));
  moved |= reported || received;
  if (now >= coordinator_->next_deadline()) coordinator_->tick(now);
  for (Bytes& frame : coordinator_->take_decisions()) {
    for (auto& queue : decisions_) queue.push_back(frame);
    RONDE_TRY(take_decision(frame, events));
    moved = true;
  }
  RONDE_ASSIGN(const bool sent, send_decisions());
  return moved || sent;
}

// Once rank 0 has left its end may close at any time: nobody answers any more, but what was decided still runs.
Result<bool> ControlPlane::talk_to_coordinator(Time now, std::vector<coord::Event>& events) {
  if (to_coordinator_ == nullptr) {
    (void)member_.take_reports();
    return false;
  }
  const Result<bool> sent = send_reports(now);
  // Also after a send that failed: its leave may be among what came before the end.
  const Result<bool> received = receive_decisions(events);
  note_sign_of_life(0, *to_coordinator_, now);
  if (sent.ok() && received.ok()) return *sent || *received;
  if (!left_.contains(0)) return sent.ok() ? received.status() : sent.status();
  to_coordinator_ = nullptr;
  reports_.clear();
  return true;
}

Result<bool> ControlPlane::send_reports(Time now) {
  if (!member_.has_reports() && reports_.empty()) return false;
  for (Bytes& frame : member_.take_reports()) {
    bytes_sent_ += frame.size();
    if (coordinator_) {
      RONDE_TRY(coordinator_->on_report(rank_, frame, now));
    } else {
      reports_.push_back(std::move(frame));
    }
  }
  if (coordinator_) return true;
  return drain(reports_, *to_coordinator_);
}

Result<bool> ControlPlane::receive_reports(Time now) {
  bool moved = false;
  for (size_t r = 0; r < to_ranks_.size(); ++r) {
    if (to_ranks_[r] == nullptr) continue;
    while (true) {
      Result<std::optional<Bytes>> frame = to_ranks_[r]->try_recv();
      if (!frame.ok()) {
        if (!dismiss(r)) return frame.status();
        break;
      }
      if (!*frame) break;
      RONDE_TRY(coordinator_->on_report(static_cast<Rank>(r), **frame, now));
      moved = true;
    }
    if (to_ranks_[r] != nullptr) note_sign_of_life(static_cast<Rank>(r), *to_ranks_[r], now);
  }
  return moved;
}

Result<bool> ControlPlane::send_decisions() {
  bool moved = false;
  for (size_t r = 0; r < to_ranks_.size(); ++r) {
    if (to_ranks_[r] == nullptr) {
      decisions_[r].clear();
      continue;
    }
    const Result<bool> sent = drain(decisions_[r], *to_ranks_[r]);
    if (!sent.ok()) {
      if (!dismiss(r)) return sent.status();
      continue;
    }
    moved |= *sent;
  }
  return moved;
}

Result<bool> ControlPlane::receive_decisions(std::vector<coord::Event>& events) {
  bool moved = false;
  while (true) {
    RONDE_ASSIGN(std::optional<Bytes> frame, to_coordinator_->try_recv());
    if (!frame) return moved;
    bytes_received_ += frame->size();
    RONDE_TRY(take_decision(*frame, events));
    moved = true;
  }
}

void ControlPlane::note_sign_of_life(Rank rank, control::Carrier& carrier, Time now) {
  if (carrier.take_sign_of_life()) heard_[rank] = now;
}

std::optional<Duration> ControlPlane::silence(Rank rank, Time now) const {
  const auto found = heard_.find(rank);
  if (found == heard_.end()) return std::nullopt;
  return now - found->second;
}

void ControlPlane::beat() {
  if (to_coordinator_ != nullptr) to_coordinator_->beat();
  for (control::Carrier* carrier : to_ranks_) {
    if (carrier != nullptr) carrier->beat();
  }
}

bool ControlPlane::dismiss(size_t r) {
  if (!left_.contains(static_cast<Rank>(r))) return false;
  to_ranks_[r] = nullptr;
  decisions_[r].clear();
  return true;
}

Status ControlPlane::take_decision(ByteSpan frame, std::vector<coord::Event>& events) {
  RONDE_ASSIGN(std::vector<coord::Event> made, member_.on_decision(frame));
  for (const coord::Event& event : made) {
    if (const auto* left = std::get_if<coord::RankLeft>(&event)) left_.insert(left->rank);
  }
  std::ranges::move(made, std::back_inserter(events));
  return {};
}

Result<bool> ControlPlane::drain(std::deque<Bytes>& queue, control::Carrier& carrier) {
  bool moved = false;
  while (!queue.empty()) {
    RONDE_ASSIGN(const bool sent, carrier.try_send(queue.front()));
    if (!sent) break;
    queue.pop_front();
    moved = true;
  }
  return moved;
}

Time ControlPlane::next_deadline() const {
  return coordinator_ ? coordinator_->next_deadline() : kNever;
}

bool ControlPlane::has_unsent() const {
  return !reports_.empty() || std::ranges::any_of(decisions_, [](const auto& queue) { return !queue.empty(); });
}

}  // namespace ronde::engine
