// SPDX-License-Identifier: Apache-2.0
// For tests: a coordinator and its members with frames in between that the test delivers when it likes.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coord/coordinator.h"
#include "coord/member.h"

namespace ronde::coord {

inline Request allreduce(std::string name, const Shape& shape = Shape{4}, DType dtype = DType::F32) {
  return make_request(OpKind::Allreduce, std::move(name), dtype, shape);
}
inline Request allgather(std::string name, int64_t first, DType dtype = DType::F32) {
  return make_request(OpKind::Allgather, std::move(name), dtype, Shape{first, 3});
}

class TestCluster {
 public:
  struct Told {
    std::string name;  // as submitted; "#2" for the third unnamed operation
    Status status;
    uint64_t batch = 0;
  };

  explicit TestCluster(Rank size, CoordinatorOptions options = {}) : coordinator_(sized(options, size)) {
    for (Rank rank = 0; rank < size; ++rank) {
      members_.push_back(std::make_unique<Member>(MemberOptions{
          .rank = rank, .size = size, .max_frame_bytes = options.max_frame_bytes, .eager = options.cut_early}));
    }
    up_.resize(members_.size());
    down_.resize(members_.size());
    told_.resize(members_.size());
    names_.resize(members_.size());
    batches_.resize(members_.size());
    lefts_.resize(members_.size());
    unnamed_.resize(members_.size());
  }

  Member& member(Rank rank) { return *members_[static_cast<size_t>(rank)]; }
  Coordinator& coordinator() { return coordinator_; }
  Rank size() const { return static_cast<Rank>(members_.size()); }
  Time now() const { return clock_.now(); }

  Status try_submit(Rank rank, const std::vector<Request>& requests, bool more = false) {
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < requests.size(); ++i) tickets.push_back(next_ticket_ + i);
    const Status status = member(rank).submit(requests, tickets, more);
    if (!status.ok()) return status;
    for (const Request& request : requests) {
      const bool is_named = !request.name.empty();
      of(names_, rank)[next_ticket_++] = is_named ? request.name : cat("#", of(unnamed_, rank)++);
    }
    return {};
  }
  // Returns the ticket of the first one.
  Ticket submit(Rank rank, const std::vector<Request>& requests, bool more = false) {
    const Ticket first = next_ticket_;
    const Status status = try_submit(rank, requests, more);
    EXPECT_TRUE(status.ok()) << status.message();
    return first;
  }
  Ticket submit(Rank rank, const Request& request, bool more = false) {
    return submit(rank, std::vector<Request>{request}, more);
  }
  void submit_all(const Request& request, bool more = false) {
    for (Rank rank = 0; rank < size(); ++rank) submit(rank, request, more);
  }

  // What the rank has to tell goes on its way.
  void send(Rank rank) {
    for (Bytes& frame : member(rank).take_reports()) {
      report_bytes_ += frame.size();
      of(up_, rank).push_back(std::move(frame));
    }
  }
  // The coordinator takes one frame of the rank; false if none is on its way.
  bool arrive(Rank rank) {
    if (of(up_, rank).empty()) return false;
    const Status status = coordinator_.on_report(rank, of(up_, rank).front(), now());
    EXPECT_TRUE(status.ok()) << status.message();
    of(up_, rank).pop_front();
    return true;
  }
  void decide() {
    for (const Bytes& frame : coordinator_.take_decisions()) {
      decision_bytes_ += frame.size();
      for (auto& queue : down_) queue.push_back(frame);
    }
  }
  // The rank takes one frame of decisions.
  bool hear(Rank rank) {
    if (of(down_, rank).empty()) return false;
    auto events = member(rank).on_decision(of(down_, rank).front());
    of(down_, rank).pop_front();
    EXPECT_TRUE(events.ok()) << events.status().message();
    if (events.ok()) {
      for (const Event& event : *events) std::visit([&](const auto& it) { take(rank, it); }, event);
    }
    return true;
  }
  // Everything is delivered, rank by rank, before anything is decided.
  void run() {
    for (Rank rank = 0; rank < size(); ++rank) run_up(rank);
    run_down();
  }
  void run(Rank rank) {
    run_up(rank);
    run_down();
  }
  void advance(Duration by) {
    clock_.advance(by);
    coordinator_.tick(now());
    run_down();
  }

  // What the rank's operations have come to since the last call, in order.
  std::vector<Told> told(Rank rank) { return std::exchange(of(told_, rank), {}); }
  // "x y" done, "!x" failed.
  std::string outcome(Rank rank) {
    std::string out;
    for (const Told& one : told(rank)) out += cat(out.empty() ? "" : " ", one.status.ok() ? "" : "!", one.name);
    return out;
  }
  Status failure(Rank rank) {
    for (const Told& one : told(rank)) {
      if (!one.status.ok()) return one.status;
    }
    return {};
  }
  const std::vector<Batch>& batches(Rank rank) { return of(batches_, rank); }
  const std::vector<Rank>& lefts(Rank rank) { return of(lefts_, rank); }
  size_t report_bytes() const { return report_bytes_; }
  size_t decision_bytes() const { return decision_bytes_; }

 private:
  static CoordinatorOptions sized(CoordinatorOptions options, Rank size) {
    options.size = size;
    return options;
  }
  template <class T>
  static T& of(std::vector<T>& all, Rank rank) {
    return all[static_cast<size_t>(rank)];
  }
  void run_up(Rank rank) {
    send(rank);
    while (arrive(rank)) {
    }
  }
  void run_down() {
    decide();
    for (Rank rank = 0; rank < size(); ++rank) {
      while (hear(rank)) {
      }
    }
  }

  void finish(Rank rank, Ticket ticket, const Status& status, uint64_t batch) {
    auto node = of(names_, rank).extract(ticket);
    ASSERT_FALSE(node.empty()) << "ticket " << ticket << " is unknown or was completed twice";
    of(told_, rank).push_back(Told{node.mapped(), status, batch});
  }
  void take(Rank rank, const SetAdded& event) { finish(rank, event.ticket, {}, event.id); }
  void take(Rank rank, const SetRemoved& event) { finish(rank, event.ticket, {}, event.id); }
  void take(Rank rank, const BatchReady& event) {
    ASSERT_EQ(event.tickets.size(), event.batch.tensors.size());
    of(batches_, rank).push_back(event.batch);
    for (size_t i = 0; i < event.tickets.size(); ++i) {
      ASSERT_NE(event.tickets[i], 0u) << "a batch holds what rank " << rank << " did not submit";
      const BatchTensor& tensor = event.batch.tensors[i];
      const std::string expected = tensor.name.empty() ? cat("#", tensor.number) : tensor.name;
      EXPECT_EQ(of(names_, rank)[event.tickets[i]], expected);
      finish(rank, event.tickets[i], Status(), event.batch.number);
    }
  }
  void take(Rank rank, const TicketFailed& event) { finish(rank, event.ticket, event.status, 0); }
  void take(Rank rank, const RankLeft& event) { of(lefts_, rank).push_back(event.rank); }

  Coordinator coordinator_;
  std::vector<std::unique_ptr<Member>> members_;
  ManualClock clock_;
  std::vector<std::deque<Bytes>> up_;
  std::vector<std::deque<Bytes>> down_;
  std::vector<std::vector<Told>> told_;
  std::vector<std::map<Ticket, std::string>> names_;  // in flight
  std::vector<std::vector<Batch>> batches_;
  std::vector<std::vector<Rank>> lefts_;
  std::vector<uint64_t> unnamed_;
  Ticket next_ticket_ = 1;
  size_t report_bytes_ = 0;
  size_t decision_bytes_ = 0;
};

}  // namespace ronde::coord
