// SPDX-License-Identifier: Apache-2.0
#include "sim/negotiation.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <utility>

#include "base/text.h"
#include "coord/coordinator.h"
#include "coord/member.h"
#include "sim/referee.h"

namespace ronde::sim {
namespace {

constexpr uint64_t kMostEvents = 2'000'000;  // more: the simulation goes round in circles

// What happens, in the order of its time; at one time, in the order of its planning.
class Agenda {
 public:
  Time now() const { return now_; }
  void plan(Time at, std::function<void()> what) {
    things_.push(Thing{std::max(at, now_), ++planned_, std::move(what)});
  }
  bool run_next() {
    if (things_.empty()) return false;
    const Thing next = things_.top();
    things_.pop();
    now_ = next.at;
    next.what();
    return true;
  }
  uint64_t planned() const { return planned_; }

 private:
  struct Thing {
    Time at;
    uint64_t order;
    std::function<void()> what;
    bool operator<(const Thing& other) const { return std::pair(other.at, other.order) < std::pair(at, order); }
  };
  std::priority_queue<Thing> things_;
  Time now_ = Time(std::chrono::seconds(1));
  uint64_t planned_ = 0;
};

struct Node {
  explicit Node(const coord::MemberOptions& options) : member(options) {}
  coord::Member member;
  size_t next_action = 0;
  bool waits = false;  // for decisions, before its next action
  bool over = false;   // the epoch, for this rank
  bool left = false;
  Time up{};  // when the last frame on the way arrives
  Time down{};
  bool in_later_step = false;
  uint64_t whole_entries = 0;  // at the end of the first step
};

class Job {
 public:
  explicit Job(const Program& program);
  NegotiationResult run();

 private:
  using Rest = std::vector<Action>;

  void act(Rank rank);
  bool perform(Rank rank, const SubmitCall& action);
  bool perform(Rank rank, const FlushAll& action);
  bool perform(Rank rank, const WaitForAll& action);
  bool perform(Rank rank, const LeaveJob& action);
  bool perform(Rank rank, const Die& action);
  void end_epoch(Rank rank);
  void end_first_step(Rank rank);

  void send_reports(Rank rank);
  void receive_report(Rank rank, const Bytes& frame);
  void decide();
  void arm_deadline();
  void send_decision(const std::shared_ptr<const Bytes>& frame);
  void receive_decision(Rank rank, const Bytes& frame);
  void check_end();
  void check_steady();

  Node& node(Rank rank) { return *nodes_[static_cast<size_t>(rank)]; }
  Time after(Duration longest) {
    return agenda_.now() + Duration(random_() % (static_cast<uint64_t>(longest.count()) + 1));
  }
  // When a frame that is sent now arrives: never before one that was sent earlier.
  Time arrival(Time& last) { return last = std::max(last, after(program_.transit)); }

  const Program& program_;
  Random random_;
  Agenda agenda_;
  coord::Coordinator coordinator_;
  Referee referee_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Time armed_ = kNever;
  size_t in_later_step_ = 0;
  uint64_t definitions_ = 0;  // when the last rank ended the first step
  NegotiationResult result_;
};

Job::Job(const Program& program)
    : program_(program),
      random_(program.seed ^ 0x9e3779b97f4a7c15),
      coordinator_(program.coordinator),
      referee_(program) {
  for (Rank rank = 0; rank < program.size; ++rank) {
    nodes_.push_back(std::make_unique<Node>(coord::MemberOptions{.rank = rank,
                                                                 .size = program.size,
                                                                 .max_frame_bytes = program.coordinator.max_frame_bytes,
                                                                 .eager = program.eager}));
  }
}

NegotiationResult Job::run() {
  for (Rank rank = 0; rank < program_.size; ++rank) {
    agenda_.plan(after(program_.think[static_cast<size_t>(rank)]), [this, rank] { act(rank); });
  }
  while (referee_.violation().empty() && agenda_.run_next()) {
    if (agenda_.planned() > kMostEvents) referee_.blame("the run does not end");
  }
  if (referee_.violation().empty()) check_end();
  result_.violation = referee_.violation();
  result_.batches = referee_.batches();
  result_.failures = referee_.failures();
  return result_;
}

// Ranks

// One action, or none if the rank has to wait; a wait flushes first.
void Job::act(Rank rank) {
  Node& self = node(rank);
  const auto& script = program_.scripts[static_cast<size_t>(rank)];
  if (self.over || self.left || self.next_action == script.size()) return;
  const bool done = std::visit([&](const auto& action) { return perform(rank, action); }, script[self.next_action]);
  self.waits = !done;
  if (!done) perform(rank, FlushAll{});
  agenda_.plan(after(program_.transit / 8), [this, rank] { send_reports(rank); });
  if (!done) return;
  ++self.next_action;
  agenda_.plan(after(program_.think[static_cast<size_t>(rank)]), [this, rank] { act(rank); });
}

bool Job::perform(Rank rank, const SubmitCall& action) {
  const Call& call = program_.uses[action.use].calls[static_cast<size_t>(rank)][action.call];
  coord::Member& member = node(rank).member;
  if (referee_.name_in_flight(rank, call)) {
    const size_t before = member.in_flight();
    const std::vector<coord::Ticket> tickets(call.size(), ~coord::Ticket{0});
    const Status status = member.submit(call, tickets, action.more);
    if (status.code() != Code::InvalidArgument || member.in_flight() != before) {
      referee_.blame(cat("rank ", rank, " submits a name in flight: ", status.to_string()));
    }
    return false;
  }
  const auto tickets = referee_.issue(rank, action.use, call);
  const Status status = member.submit(call, tickets, action.more);
  if (!status.ok()) referee_.blame(cat("rank ", rank, " cannot submit use ", action.use, ": ", status.to_string()));
  result_.tensors += call.size();
  if (node(rank).in_later_step) result_.later_tensors += call.size();
  return true;
}

bool Job::perform(Rank rank, const FlushAll&) {
  coord::Member& member = node(rank).member;
  member.flush();
  for (const coord::Ticket ticket : referee_.pending(rank)) {
    if (member.is_held(ticket)) referee_.blame(cat("rank ", rank, " holds ticket ", ticket, " back after a flush"));
  }
  return true;
}

bool Job::perform(Rank rank, const WaitForAll&) {
  if (referee_.has_pending(rank)) return false;
  if (!node(rank).in_later_step) end_first_step(rank);
  return true;
}

bool Job::perform(Rank rank, const LeaveJob&) {
  node(rank).member.leave();
  return true;
}

bool Job::perform(Rank rank, const Die&) {
  ++node(rank).next_action;
  end_epoch(rank);
  for (Rank other = 0; other < program_.size; ++other) {
    agenda_.plan(after(program_.transit), [this, other] { end_epoch(other); });
  }
  return false;
}

// As the engine does when it hears of a death: what is in flight fails, and nothing more is said or heard.
void Job::end_epoch(Rank rank) {
  Node& self = node(rank);
  if (self.over || self.left) return;
  self.over = true;
  referee_.on_end(rank, self.member.fail_all());
}

void Job::end_first_step(Rank rank) {
  node(rank).in_later_step = true;
  node(rank).whole_entries = node(rank).member.whole_entries();
  if (++in_later_step_ == nodes_.size()) definitions_ = coordinator_.counters().definitions;
}

// Frames

void Job::send_reports(Rank rank) {
  Node& self = node(rank);
  if (self.over || !self.member.has_reports()) return;
  for (Bytes& frame : self.member.take_reports()) {
    if (frame.size() > program_.coordinator.max_frame_bytes) referee_.blame(cat("rank ", rank, ": report too long"));
    if (self.in_later_step) result_.later_report_bytes += frame.size();
    agenda_.plan(arrival(self.up), [this, rank, sent = std::move(frame)] { receive_report(rank, sent); });
  }
  if (self.member.has_reports()) referee_.blame(cat("rank ", rank, " has told all and has still reports"));
}

void Job::receive_report(Rank rank, const Bytes& frame) {
  const Status status = coordinator_.on_report(rank, frame, agenda_.now());
  if (!status.ok()) return referee_.blame(cat("a report of rank ", rank, " is refused: ", status.to_string()));
  agenda_.plan(after(program_.transit / 8), [this] { decide(); });
}

void Job::decide() {
  if (chance(random_, 50)) coordinator_.tick(agenda_.now());
  for (Bytes& frame : coordinator_.take_decisions()) {
    if (frame.size() > program_.coordinator.max_frame_bytes) referee_.blame("a decision is too long");
    if (in_later_step_ == nodes_.size()) result_.later_decision_bytes += frame.size();
    send_decision(std::make_shared<const Bytes>(std::move(frame)));
  }
  arm_deadline();
}

void Job::arm_deadline() {
  const Time next = coordinator_.next_deadline();
  if (next == kNever || next == armed_) return;
  armed_ = next;
  agenda_.plan(next, [this, next] {
    if (coordinator_.next_deadline() != next) return;
    coordinator_.tick(agenda_.now());
    decide();
    if (coordinator_.next_deadline() <= agenda_.now()) referee_.blame("a deadline stays after its tick");
  });
}

void Job::send_decision(const std::shared_ptr<const Bytes>& frame) {
  for (Rank rank = 0; rank < program_.size; ++rank) {
    agenda_.plan(arrival(node(rank).down), [this, rank, frame] { receive_decision(rank, *frame); });
  }
}

void Job::receive_decision(Rank rank, const Bytes& frame) {
  Node& self = node(rank);
  if (self.over || self.left) return;
  const auto events = self.member.on_decision(frame);
  if (!events.ok()) {
    return referee_.blame(cat("rank ", rank, " cannot read a decision: ", events.status().to_string()));
  }
  for (const coord::Event& event : events.value()) {
    referee_.on_event(rank, event);
    const auto* left = std::get_if<coord::RankLeft>(&event);
    if (left != nullptr && left->rank == rank) self.left = true;
  }
  if (std::exchange(self.waits, false)) act(rank);
}

// The end

void Job::check_end() {
  std::vector<bool> complete;
  for (Rank rank = 0; rank < program_.size; ++rank) {
    Node& self = node(rank);
    const auto& script = program_.scripts[static_cast<size_t>(rank)];
    const bool leaves = !script.empty() && std::holds_alternative<LeaveJob>(script.back());
    complete.push_back(self.over || (self.next_action == script.size() && self.left == leaves));
    if (self.member.in_flight() != 0) referee_.blame(cat("rank ", rank, " ends with submissions in flight"));
  }
  referee_.finish(complete);
  const bool serves = program_.fault != Fault::Dies;
  if (serves && coordinator_.next_deadline() != kNever) referee_.blame("the coordinator still waits for something");
  if (program_.steady) check_steady();
}

void Job::check_steady() {
  if (coordinator_.counters().definitions != definitions_) referee_.blame("a later step defines something");
  for (Rank rank = 0; rank < program_.size; ++rank) {
    if (node(rank).member.whole_entries() != node(rank).whole_entries) {
      referee_.blame(cat("rank ", rank, " tells something in whole in a later step"));
    }
  }
}

}  // namespace

NegotiationResult run_negotiation(const Program& program) {
  return Job(program).run();
}

}  // namespace ronde::sim
