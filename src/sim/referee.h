// SPDX-License-Identifier: Apache-2.0
// Referee: watches a simulated negotiation and holds it to its promises.
//
//   - every rank gets the same batches in the same order;
//   - a batch has this rank's own submission of each of its tensors, and all fit to what the batch says;
//   - each submission ends exactly once, and the submissions of one use end alike on all ranks: in the same batches, or
//   all in the
//     failure that the program asks for;
//   - nothing is left over.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "coord/member.h"
#include "sim/program.h"

namespace ronde::sim {

class Referee {
 public:
  explicit Referee(const Program& program);

  // Tickets for a call that `rank` is about to submit.
  std::vector<coord::Ticket> issue(Rank rank, size_t use, const Call& call);
  void on_event(Rank rank, const coord::Event& event);
  // The run is over. `complete[rank]`: the rank has run its script to the end.
  void finish(const std::vector<bool>& complete);
  // The epoch ended for the rank, with these in flight.
  void on_end(Rank rank, const std::vector<coord::Ticket>& in_flight);

  bool has_pending(Rank rank) const { return !pending_[static_cast<size_t>(rank)].empty(); }
  const std::set<coord::Ticket>& pending(Rank rank) const { return pending_[static_cast<size_t>(rank)]; }
  bool name_in_flight(Rank rank, const Call& call) const;

  void blame(std::string what);  // the first one stays
  const std::string& violation() const { return violation_; }
  size_t batches() const { return order_.size(); }
  size_t failures() const { return failures_; }

 private:
  struct Entry {
    Rank rank;
    size_t use;
    Request request;
    uint64_t number;     // if unnamed
    uint64_t batch = 0;  // 0: not run
    Code code = Code::Ok;
    bool pending = true;
  };

  void on_batch(Rank rank, const coord::BatchReady& ready);
  void on_tensor(Rank rank, const Batch& batch, size_t t, coord::Ticket ticket);
  void on_failed(Rank rank, const coord::TicketFailed& failed);
  Entry* close(Rank rank, coord::Ticket ticket);
  void check_failure(const Entry& entry, const Status& status);
  void check_use(size_t use);
  std::string text_of(const Entry& entry) const;

  const Program& program_;
  std::vector<Entry> entries_;                     // by ticket - 1
  std::vector<std::set<coord::Ticket>> pending_;   // by rank
  std::vector<std::multiset<std::string>> names_;  // by rank, in flight
  std::vector<uint64_t> numbers_;                  // by rank: the next unnamed one
  std::vector<size_t> seen_;                       // by rank: batches
  std::vector<std::string> order_;                 // the batches as text
  std::string violation_;
  size_t failures_ = 0;
};

}  // namespace ronde::sim
