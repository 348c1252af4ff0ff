// SPDX-License-Identifier: Apache-2.0
// Engine: one rank's life in one epoch. Steps 3, 4, 8 and 11 of the walk: takes submissions, drives the state machines
// of coordination and collectives, completes handles.
//
// Nothing in it blocks. Whoever holds the progress lock drives: a user's thread that waits, else the thread
// "ronde-loop". Only the driver touches the state machines, sets the `sleeping` word and sleeps on the bells;
// submissions reach it through a queue. Order of one step: submissions, control, then one block of each running batch,
// so that a big batch never holds up control.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_set>
#include <vector>

#include "coord/coordinator.h"
#include "coord/member.h"
#include "engine/batches.h"
#include "engine/control_plane.h"
#include "engine/handles.h"
#include "engine/parts.h"
#include "engine/process_sets.h"
#include "engine/submissions.h"
#include "engine/waiting.h"

namespace ronde::engine {

// One tensor of a submission, with its memory.
struct Submission {
  Request request;
  Binding binding;
};

struct Counters {
  uint64_t batches = 0;
  uint64_t tensors = 0;
  uint64_t control_bytes_sent = 0;
  uint64_t control_bytes_received = 0;
  uint64_t full_requests = 0;
  uint64_t wakeups = 0;
  uint64_t data_bytes_sent = 0;
};

// Thread: any, but for the constructor and destructor.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static std::shared_ptr<Engine> start(Parts parts);
  ~Engine();

  const Topology& topology() const { return parts_.topology; }
  const std::string& transport() const { return parts_.transport; }
  const std::string& transport_reason() const { return parts_.transport_reason; }
  const Clock& clock() const { return *parts_.time.clock; }
  Counters counters() const;

  // One handle per tensor, or an error and nothing submitted. Never blocks. `more`: further submissions of this step
  // follow.
  Result<std::vector<Ticket>> submit(std::span<const Submission> submissions, bool more);
  // Tensors submitted with `more` may be cut from now on.
  void flush();
  // Complete? Flushes. Nothing: no such handle.
  std::optional<bool> poll(Ticket ticket);
  // Waits and drives meanwhile. Interrupted: the deadline passed, the handle lives on. Otherwise the handle's status;
  // the handle is then gone, unless it holds an output to be taken.
  Status wait(Ticket ticket, Time deadline);
  Result<OwnedOutput> take_output(Ticket ticket);

  // Leaves the job: a point in the total order. What is in flight fails. Returns when the others were told, or when
  // `deadline` has passed. Rank 0 goes on to serve in the background while others have not left, for kServeAfterLeave.
  // Once.
  void leave(Time deadline);
  Status tell_failure(const Status& what);

 private:
  explicit Engine(Parts parts);

  // --- step.cc: with the progress lock held ---
  bool step();
  bool take_submissions();
  void take(QueuedSubmission submission);
  bool pump_control(Time now);
  void handle(coord::BatchReady event, Time now);
  Status begin(Batch batch, const std::vector<Ticket>& tickets, Time now);
  void handle(coord::TicketFailed event, Time now);
  void handle(coord::RankLeft event, Time now);
  void handle(coord::SetAdded event, Time now);
  void handle(coord::SetRemoved event, Time now);
  bool advance_batches();
  bool has_left() const { return left_.contains(parts_.topology.rank); }
  void finish_leave();
  void tell_leave();
  void publish_counters();

  // --- failure.cc: with the progress lock held ---
  bool look_for_causes(Time now);
  void take_news(Time now);
  void suspect(const Status& symptom, Time now);
  void fail(const Status& cause);
  void abort(const Status& cause);
  std::string waits_for(const Batches::Entry& batch) const;
  std::string silent_ranks(Time now) const;
  std::optional<Duration> long_silence(Rank rank, Time now) const;
  bool check_deadlines(Time now);
  bool check_running_batch(Time now);
  Time next_deadline() const;
  void complete(Ticket ticket, const Status& status);
  void give_up(Ticket ticket, const Status& cause);

  // --- drive.cc ---
  void loop();
  void drive(Time deadline, const Handle& handle);
  void rest(Time deadline);
  void sleep(control::Sleeping bell, Time deadline);
  void hand_over(std::unique_lock<std::mutex> progress);
  void stop_loop();
  void wake_driver();
  bool serves(Time now) const;

  struct StoreSource final : os::EventSet::Source {
    void on_ready(bool readable, bool) override { ready = ready || readable; }
    bool ready = true;
  };

  Parts parts_;
  const bool eager_;  // batches are cut early, to overlap with computing
  HandleTable handles_;
  SubmissionQueue submissions_;
  ProcessSets sets_;

  std::mutex progress_;  // whoever holds it drives; it guards everything up to the next blank line
  ControlPlane control_;
  Batches batches_;
  Waiting waiting_;
  StoreSource store_source_;
  std::vector<int> locals_;  // indices of the ranks on the board
  std::vector<coord::Event> events_;
  std::optional<Status> failed_;   // the epoch is over
  std::optional<Status> symptom_;  // something broke; the cause is being asked for
  Time symptom_since_{};
  Time next_beat_{};
  uint64_t ticks_ = 0;
  Time next_look_{};
  std::unordered_set<Rank> left_;
  Ticket leave_ticket_ = 0;
  std::shared_ptr<Engine> serving_self_;  // keeps rank 0 alive while it serves after its leave
  Time serve_until_{};

  std::atomic<bool> stop_{false};
  std::atomic<bool> leave_begun_{false};
  std::atomic<bool> abandon_{false};  // a leave gave up waiting: fail what is in flight
  std::atomic<uint32_t> loop_parked_{0};
  std::atomic<Time> loop_sleeps_until_{Time{}};
  // What counters() shows, written by the driver.
  struct {
    std::atomic<uint64_t> batches{0}, tensors{0}, control_sent{0}, control_received{0}, full_requests{0}, wakeups{0},
        data_sent{0};
  } counted_;
  std::thread thread_;
};

}  // namespace ronde::engine
