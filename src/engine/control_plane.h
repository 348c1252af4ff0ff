// SPDX-License-Identifier: Apache-2.0
// ControlPlane: carries reports and decisions between this rank's Member and the Coordinator, which on rank 0 is here.
// Thread: the driver.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "control/carrier.h"
#include "coord/coordinator.h"
#include "coord/member.h"

namespace ronde::engine {

class ControlPlane {
 public:
  // `to_coordinator` is absent on rank 0; `to_ranks` is empty elsewhere. Carriers outlive the plane.
  ControlPlane(Rank rank, Rank size, bool eager, std::optional<coord::CoordinatorOptions> coordinator,
               control::Carrier* to_coordinator, std::vector<control::Carrier*> to_ranks);

  coord::Member& member() { return member_; }

  // Moves frames both ways until nothing moves; appends what the decisions mean for this rank. True if anything moved.
  // An error: a carrier broke or a peer sent nonsense; the text says who.
  Result<bool> pump(Time now, std::vector<coord::Event>& events);

  Time next_deadline() const;
  // For how long nothing came from a rank that this one talks to on another host; nothing where it cannot be known.
  std::optional<Duration> silence(Rank rank, Time now) const;
  // Tells the ranks on other hosts that this one is at work.
  void beat();
  // True while frames wait for room in a carrier.
  bool has_unsent() const;

  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t bytes_received() const { return bytes_received_; }

 private:
  Result<bool> talk_to_coordinator(Time now, std::vector<coord::Event>& events);
  Result<bool> send_reports(Time now);
  Result<bool> receive_reports(Time now);
  Result<bool> send_decisions();
  Result<bool> receive_decisions(std::vector<coord::Event>& events);
  Status take_decision(ByteSpan frame, std::vector<coord::Event>& events);
  // A carrier of rank `r` has ended. True if the rank has left, which ends its carrier even while this rank still runs
  // what was decided before: it is looked at no more.
  bool dismiss(size_t r);
  void note_sign_of_life(Rank rank, control::Carrier& carrier, Time now);
  Result<bool> drain(std::deque<Bytes>& queue, control::Carrier& carrier);

  Rank rank_;
  coord::Member member_;
  std::unique_ptr<coord::Coordinator> coordinator_;
  control::Carrier* to_coordinator_;  // null on rank 0, and once rank 0 is gone
  std::vector<control::Carrier*> to_ranks_;
  std::unordered_set<Rank> left_;
  std::unordered_map<Rank, Time> heard_;      // the last sign of life
  std::deque<Bytes> reports_;                 // towards the coordinator
  std::vector<std::deque<Bytes>> decisions_;  // towards each rank; the own one is taken directly
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
};

}  // namespace ronde::engine
