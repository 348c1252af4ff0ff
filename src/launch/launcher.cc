// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <csignal>
#include <set>
#include <utility>
#include <variant>

#include "launch/agent.h"
#include "launch/job.h"
#include "launch/policy.h"
#include "launch/program_search.h"
#include "os/pipe.h"
#include "os/private_folder.h"
#include "os/process.h"

namespace ronde::launch {
namespace {

// An agent that has closed its channel but does not end gets so long.
constexpr Duration kAgentPatience = std::chrono::seconds(2);
// After a second signal the agent has so long to kill the ranks and to end.
constexpr Duration kKillPatience = std::chrono::seconds(5);
// After an interrupt, when the ranks have ended, nobody waits longer for output that a blocked reader does not take.
constexpr Duration kDrainPatience = std::chrono::seconds(1);

// Past the writer of the output, whose thread is blocked; nothing if this would block as well.
void complain_at_once(std::string_view text) {
  if (!os::is_same_file(1, 2)) os::write_if_room(2, cat("ronde: ", text, "\n"));
}

// The key Ctrl-C, where the only rank keeps the terminal: the second one within this time kills,
constexpr Duration kKeyMemory = std::chrono::seconds(10);
// unless the rank is back at a prompt so soon after it.
constexpr Duration kKeyAnswer = std::chrono::milliseconds(300);

struct NoSource final : os::EventSet::Source {
  void on_ready(bool, bool) override {}
};

// Nothing is ever said over a lifeline: that it is readable is its end.
struct Lifeline final : os::EventSet::Source {
  void on_ready(bool readable, bool) override { ended = ended || readable; }
  bool ended = false;
};

class Launcher {
 public:
  Launcher(Job job, Duration grace)
      : job_(std::move(job)), policy_({.hosts = job_.plan.hosts_by_rank, .grace = grace}) {}
  int run();

 private:
  Status watch();
  bool over() const;
  Time next_deadline() const;
  void take_signals();
  void mind_the_lifeline();
  void take_key(int signal);
  void mind_the_key();
  void take_reports();
  void take(const RankStarted& report);
  void take(const RankEnded& report);
  void take(const RankOutput& report);
  void take(const RankClosed& report);
  void take(const AgentSays& report);
  void take(const AgentDone& report);
  void take_agent_exit();
  void take_output_progress();
  void mind_the_reader();
  void discard();
  void apply(const Event& event);
  void conclude();
  bool in_range(int rank) const { return rank >= 0 && rank < static_cast<int>(job_.plan.hosts_by_rank.size()); }

  Job job_;
  Policy policy_;
  NoSource no_source_;
  Lifeline lifeline_;
  Time now_{};
  std::set<int> rank_pids_;
  int key_signal_ = 0;  // came from the terminal, which has sent it to the rank as well
  Time key_at_{};
  Time kill_by_key_at_ = kNever;
  bool interrupted_ = false;
  bool orphaned_ = false;    // the lifeline has ended
  bool agent_done_ = false;  // in order
  bool agent_gone_ = false;  // reaped, and what it left is swept
  Time agent_by_ = kNever;
  bool concluded_ = false;
  Time drain_by_ = kNever;
  bool discards_ = false;  // what output is still to come
  bool idle_ = true;
  bool output_lost_ = false;
  int status_ = 0;
  std::string fatal_;
  std::string last_line_;
};

int Launcher::run() {
  if (const Status status = watch(); !status.ok()) {
    complain(status.message());
    return 1;
  }
  for (const auto& notice : job_.plan.notices) job_.output->say(cat("ronde: ", notice));
  job_.agent->channel().send(encode(Order(job_.order)));
  while (!over()) {
    const int fd = job_.events.fd();
    os::sleep_until_readable({&fd, 1}, next_deadline());
    job_.events.collect();
    now_ = SteadyClock().now();
    take_signals();
    mind_the_lifeline();
    mind_the_key();
    for (const Event& event : job_.mailbox->take()) apply(event);
    take_reports();
    take_agent_exit();
    apply(Tick{});
    job_.output->tick(now_);
    if (agent_gone_ && !concluded_) conclude();
    take_output_progress();
    mind_the_reader();
  }
  if (orphaned_ && !job_.scratch.empty()) os::remove_folder(job_.scratch);
  if (!idle_) complain_at_once(cat(last_line_, last_line_.empty() ? "" : "; ", "output that nobody has read is lost"));
  return status_ == 0 && output_lost_ ? 1 : status_;
}

Status Launcher::watch() {
  const int fds[] = {job_.signals.fd(), job_.agent->channel().fd(), job_.agent->pidfd(), job_.mailbox->fd(),
                     job_.output->fd()};
  for (const int fd : fds) RONDE_TRY(job_.events.add(fd, &no_source_));
  if (job_.lifeline < 0) return {};
  const Status status = job_.events.add(job_.lifeline, &lifeline_);
  return status.ok() ? status : status.with_context(cat("--lifeline ", job_.lifeline));
}

// Whoever started this is gone: nobody reads results or output.
void Launcher::mind_the_lifeline() {
  if (!std::exchange(lifeline_.ended, false)) return;
  job_.events.remove(job_.lifeline);
  orphaned_ = interrupted_ = true;
  apply(Interrupted{SIGTERM});
}

bool Launcher::over() const {
  return concluded_ && (idle_ || discards_);
}

Time Launcher::next_deadline() const {
  return std::min({policy_.next_deadline(), job_.output->next_deadline(), agent_by_, drain_by_, kill_by_key_at_});
}

void Launcher::take_signals() {
  while (const auto signal = job_.signals.take()) {
    if (signal->number == SIGCHLD) {
      os::reap_strangers({job_.agent->pid()});
    } else if (concluded_) {
      if (std::exchange(interrupted_, true)) discard();
    } else if (signal->from_kernel && job_.order.group >= 0) {
      take_key(signal->number);
    } else {
      interrupted_ = true;
      apply(Interrupted{signal->number});
    }
  }
}

// What the rank does about a key is its own affair, and so is its status then: an interactive session goes on, and a
// program that saves and exits with 0 has not failed. Only a rank that does not answer is killed.
void Launcher::take_key(int signal) {
  const Duration since_last = now_ - key_at_;
  const bool again = signal == key_signal_ && since_last >= kEcho && since_last < kKeyMemory;
  if (signal == SIGINT && again && kill_by_key_at_ == kNever) kill_by_key_at_ = now_ + kKeyAnswer;
  key_signal_ = signal;
  key_at_ = now_;
}

void Launcher::mind_the_key() {
  if (kill_by_key_at_ > now_) return;
  kill_by_key_at_ = kNever;
  if (policy_.finished() || os::edits_line(os::is_terminal(0) ? 0 : 1)) return;
  interrupted_ = true;
  apply(Interrupted{key_signal_, true});
}

void Launcher::take_reports() {
  const bool alive = job_.agent->channel().receive();
  while (const auto frame = job_.agent->channel().next()) {
    const auto report = decode_report(*frame);
    if (!report.ok()) {
      job_.output->say(cat("ronde: ", report.status().message()));
      job_.agent->kill();
      break;
    }
    std::visit([&](const auto& one) { take(one); }, *report);
  }
  job_.agent->channel().flush();
  if (!alive && agent_by_ == kNever && !agent_gone_) agent_by_ = now_ + kAgentPatience;
}

void Launcher::take(const RankStarted& report) {
  if (!in_range(report.rank)) return;
  rank_pids_.insert(report.pid);
  apply(Started{report.rank, report.pid});
}

void Launcher::take(const RankEnded& report) {
  if (!in_range(report.rank)) return;
  // The rank's own words may have come on the other way meanwhile.
  for (const Event& event : job_.mailbox->take()) apply(event);
  // A shell says so of the program that it ran.
  const bool by_key = key_signal_ != 0 && exit_status(report.ending) == 128 + key_signal_;
  if (by_key) apply(Interrupted{key_signal_});
  apply(Ended{report.rank, report.ending});
}

void Launcher::take(const RankOutput& report) {
  if (discards_) {
    job_.agent->channel().send(encode(Order(Credit{report.bytes.size()})));
  } else if (in_range(report.rank)) {
    job_.output->write(report.rank, report.stream == 2 ? 2 : 1, report.bytes, now_);
  }
}

void Launcher::take(const RankClosed& report) {
  if (in_range(report.rank)) job_.output->close(report.rank, report.stream == 2 ? 2 : 1);
}

void Launcher::take(const AgentSays& report) {
  if (report.fatal) {
    fatal_ = report.text;
  } else {
    job_.output->say(cat("ronde: ", report.text));
  }
}

void Launcher::take(const AgentDone&) {
  agent_done_ = true;
}

void Launcher::take_agent_exit() {
  if (agent_gone_) return;
  if (agent_by_ <= now_) {
    agent_by_ = kNever;
    job_.agent->kill();
  }
  const auto& exit = job_.agent->exit();
  if (!exit) return;
  take_reports();  // what it said last
  agent_gone_ = true;
  agent_by_ = kNever;
  if (agent_done_) return;
  const Ending ending{exit->by_signal ? Ending::Kind::Killed : Ending::Kind::Exited, exit->code, false};
  apply(AgentLost{job_.agent->pid(), ending});
  sweep_job(job_.id, rank_pids_, job_.signals);
  os::remove_folder(job_.order.run_dir);
}

void Launcher::take_output_progress() {
  const auto progress = job_.output->take_progress();
  idle_ = progress.idle;
  output_lost_ = output_lost_ || progress.lost;
  if (progress.credit > 0) job_.agent->channel().send(encode(Order(Credit{progress.credit})));
  if (progress.stdout_closed && !interrupted_ && !concluded_) {
    interrupted_ = true;
    apply(Interrupted{SIGPIPE});
  }
}

// A reader that is merely slow is waited for, also to the end of its output; after an interrupt not for long.
void Launcher::mind_the_reader() {
  const bool waits = interrupted_ && !idle_ && !discards_ && (concluded_ || policy_.finished());
  if (!waits) {
    drain_by_ = kNever;
  } else if (drain_by_ == kNever) {
    drain_by_ = now_ + kDrainPatience;
  } else if (drain_by_ <= now_) {
    discard();
  }
}

// The agent ends when it has passed on everything, and for that needs the credit that the reader does not give.
void Launcher::discard() {
  discards_ = true;
  drain_by_ = kNever;
  job_.agent->channel().send(encode(Order(Credit{kOutputWindow})));
}

void Launcher::apply(const Event& event) {
  for (const Action& action : policy_.step(event, now_)) {
    if (action.cause) {
      job_.store->publish(*action.cause);
    } else {
      job_.agent->channel().send(encode(Order(SignalOrder{action.signal})));
    }
  }
  if (policy_.killed() && agent_by_ == kNever && !agent_gone_) agent_by_ = now_ + kKillPatience;
}

// The last words: what the failing rank said last, then who failed and how.
void Launcher::conclude() {
  concluded_ = true;
  const Verdict verdict = policy_.verdict();
  status_ = fatal_.empty() ? verdict.status : 1;
  if (verdict.blamed >= 0) job_.output->repeat_last_lines(verdict.blamed);
  last_line_ = fatal_.empty() ? verdict.line : fatal_;
  if (!last_line_.empty()) job_.output->say(cat("ronde: ", last_line_));
}

}  // namespace

int run_job(const RunOptions& options, const Environment& env) {
  const Environment of_ranks = with_additions(env, options.env);
  const char* path = find_variable(of_ranks, "PATH");
  const auto program = find_program(options.command[0], path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  if (const auto* missing = std::get_if<NoProgram>(&program)) {
    complain(missing->message);
    return missing->status;
  }
  auto job = start_job(options, env, std::get<FoundProgram>(program).path);
  if (!job.ok()) {
    complain(job.status().message());
    return 1;
  }
  return Launcher(std::move(job).value(), options.grace).run();
}

void complain(std::string_view text) {
  std::string out = "ronde: ";
  for (const char c : text) out += c == '\n' ? std::string("\nronde: ") : std::string(1, c);
  const Status ignored = os::write_blocking(2, out + "\n");
}

}  // namespace ronde::launch
