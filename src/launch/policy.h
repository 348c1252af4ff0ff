// SPDX-License-Identifier: Apache-2.0
// What the launcher decides: who is to blame, who hears of it and when, and when the ranks are told to end. Events in,
// actions out; time is a value. Pure.
//
// - The first rank that ends with a failure is to blame. Its cause is published at once; one that exited with a status
// gets
//   kTellPatience for its own words (an exception's text) to arrive on their other way. What ends later is a
//   consequence.
// - A rank that fails because another has left the job, or that itself leaves after another, may suffer from that other
//   one's failure (a sys.exit(1), a shutdown() in a finally): blame waits until those have ended, kLeftPatience at
//   most.
// - After a failure the others have `grace` to end by themselves, then SIGTERM, then kKillAfter until SIGKILL.
// - A rank that exits with 0 is no failure. If it never left the job, others may wait for it: they hear so.
// - A rank that told its failure but does not end within kEndPatience is to blame without having ended.
// - A signal to the launcher goes on to the ranks and nobody is to blame; they may take their time, until the first of
// them ends. A second
//   one, not the echo of the first, kills.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "launch/ending.h"
#include "member/store.h"

namespace ronde::launch {

constexpr Duration kTellPatience = std::chrono::milliseconds(50);
constexpr Duration kLeavePatience = std::chrono::milliseconds(200);
// Nobody waits for the end of this: what needs a rank that has left fails at once.
constexpr Duration kLeftPatience = std::chrono::seconds(5);
constexpr Duration kEndPatience = std::chrono::seconds(1);
constexpr Duration kKillAfter = std::chrono::seconds(5);
// Two signals closer than this are one: some programs signal a process and then its group.
constexpr Duration kEcho = std::chrono::milliseconds(100);

// Events.
struct Started {
  int rank = 0;
  int pid = 0;
};
struct Ended {
  int rank = 0;
  Ending ending;
};
struct Told {
  int rank = 0;
  std::string text;
  Code code = Code::Internal;
};
struct LeftJob {
  int rank = 0;
  int order = 0;  // how many had left before
};
// All ranks have arrived: an epoch begins, and nobody has left it.
struct Arrived {};
struct Interrupted {
  int signal = 0;
  bool again = false;  // the ranks have had it already, and now are to be killed
};
struct AgentLost {
  int pid = 0;
  Ending ending;
};
struct Tick {};
using Event = std::variant<Started, Ended, Told, LeftJob, Arrived, Interrupted, AgentLost, Tick>;

struct Action {
  std::optional<member::Cause> cause;  // to be published
  int signal = 0;                      // otherwise, to all ranks
};

struct Verdict {
  int status = 0;    // of the launcher
  int blamed = -1;   // a rank
  std::string line;  // "" if there is nothing to say
};

class Policy {
 public:
  struct Options {
    std::vector<std::string> hosts;  // by rank
    Duration grace = std::chrono::seconds(3);
  };
  explicit Policy(Options options);

  std::vector<Action> step(const Event& event, Time now);
  // When a Tick is due.
  Time next_deadline() const;
  bool finished() const { return running_ == 0; }
  // By a second signal.
  bool killed() const { return killed_; }
  Verdict verdict() const;

 private:
  static constexpr int kStays = 1 << 30;
  struct Rank {
    int pid = -1;
    std::optional<Ending> ending;
    bool ended_by_us = false;  // by a signal that the policy had sent
    std::string told;
    Code told_code = Code::Internal;
    Time end_by = kNever;  // after it told its failure
    int left = kStays;     // how many had left before
  };

  void on(const Started& event, Time now);
  void on(const Ended& event, Time now);
  void on(const Told& event, Time now);
  void on(const LeftJob& event, Time now);
  void on(const Arrived& event, Time now);
  void on(const Interrupted& event, Time now);
  void on(const AgentLost& event, Time now);
  void on(const Tick& event, Time now);

  void on_failure(int rank, Time now);
  bool has_left(int rank) const { return ranks_[rank].left != kStays; }
  bool may_suffer(int rank) const;
  void blame(int rank, Time now);
  void publish(int rank, Code code, std::string text);
  void signal(int number);
  void begin_to_end(Time now);
  std::string name(int rank, bool with_host) const;
  std::string what_happened(int rank) const;
  Verdict blaming() const;
  std::string origin() const;

  Options options_;
  std::vector<Rank> ranks_;
  int running_;
  std::vector<Action> actions_;  // of the present step

  int blamed_ = -1;
  int others_ = 0;            // that ran when it was blamed
  Time publish_at_ = kNever;  // the cause of blamed_
  bool arrived_ = false;      // all ranks, at least once: they use the engine
  bool published_ = false;
  int suspect_ = -1;  // failed, and may suffer from one that left before
  Time suspect_until_ = kNever;
  int quiet_ = -1;  // exited with 0 and has not left so far
  Time quiet_until_ = kNever;
  int interrupt_ = 0;
  Time interrupted_at_{};
  bool killed_ = false;
  std::set<int> sent_;  // signals
  bool term_sent_ = false;
  Time term_at_ = kNever;
  Time kill_at_ = kNever;
  std::optional<AgentLost> agent_lost_;
};

}  // namespace ronde::launch
