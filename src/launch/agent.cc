// SPDX-License-Identifier: Apache-2.0
#include "launch/agent.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "launch/channel.h"
#include "launch/frames.h"
#include "launch/rank_process.h"
#include "member/broker.h"
#include "os/event_set.h"
#include "os/memory_kills.h"
#include "os/pipe.h"
#include "os/private_folder.h"
#include "os/process.h"
#include "os/procfs.h"
#include "os/signals.h"

namespace ronde::launch {
namespace {

// What is left when the ranks have ended gets SIGTERM and so long until SIGKILL.
constexpr Duration kSweepPatience = std::chrono::seconds(1);
// What the ranks have when the launcher is gone.
constexpr Duration kOrphanPatience = std::chrono::seconds(2);
// Killing is repeated, because processes may have been started meanwhile, and given up at last: some cannot be killed.
constexpr Duration kKillAgain = std::chrono::milliseconds(100);
constexpr int kMaxKills = 50;

struct NoSource final : os::EventSet::Source {
  void on_ready(bool, bool) override {}
};

class Agent {
 public:
  Agent(os::Fd channel, os::Signals signals, os::EventSet events)
      : channel_(std::move(channel)), signals_(std::move(signals)), events_(std::move(events)) {}
  int run();

 private:
  enum class Phase : uint8_t { Waiting, Running, Sweeping, Draining, Done };

  Time next_deadline() const;
  void take_signals(Time now);
  void take_orders(Time now);
  void obey(const StartOrder& order, Time now);
  void obey(const SignalOrder& order, Time now);
  void obey(const Credit& order, Time now);
  Status start(const StartOrder& order);
  void start_broker(const StartOrder& order, Environment& env);
  void take_endings();
  void reap_strangers();
  void end_rank(RankProcess& rank, const os::Exit& exit);
  bool killed_by_kernel(const os::Exit& exit);
  void pass_output();
  void pass_output(RankProcess& rank, int stream);
  void lose_launcher(Time now);
  void end_all(Time now, Duration patience);
  void advance(Time now);
  void sweep(Time now);
  void clean();
  void say(bool fatal, std::string text) { report(AgentSays{fatal, std::move(text)}); }
  void report(const Report& report) { channel_.send(encode(report)); }
  bool may_pass() const { return launcher_lost_ || credit_ > 0; }

  Channel channel_;
  os::Signals signals_;
  os::EventSet events_;
  NoSource no_source_;
  Phase phase_ = Phase::Waiting;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::vector<int> ended_;  // local ranks whose pidfd has become readable, in that order
  size_t running_ = 0;
  os::Pipe errors_;  // of starting
  std::string run_dir_;
  std::unique_ptr<member::BrokerServer> broker_;
  std::optional<uint64_t> memory_kills_;
  size_t credit_ = kOutputWindow;
  bool launcher_lost_ = false;
  bool strangers_ = false;  // some child has ended
  bool termed_ = false;
  Time kill_at_ = kNever;
  int kills_ = 0;
};

int Agent::run() {
  for (const int fd : {channel_.fd(), signals_.fd()}) {
    if (!events_.add(fd, &no_source_).ok()) return 1;
  }
  while (phase_ != Phase::Done || (channel_.unsent() > 0 && !channel_.closed())) {
    const int fd = events_.fd();
    os::sleep_until_readable({&fd, 1}, next_deadline());
    events_.collect();
    const Time now = SteadyClock().now();
    take_orders(now);
    take_signals(now);
    take_endings();
    reap_strangers();
    pass_output();
    advance(now);
    channel_.flush();
  }
  return 0;
}

Time Agent::next_deadline() const {
  const bool busy =
      may_pass() && std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->readable(); });
  return busy ? Time{} : kill_at_;
}

void Agent::take_signals(Time now) {
  while (const auto signal = signals_.take()) {
    if (signal->number == SIGTERM) lose_launcher(now);
    if (signal->number == SIGCHLD) strangers_ = true;
  }
}

void Agent::take_orders(Time now) {
  const bool alive = channel_.receive();
  while (const auto frame = channel_.next()) {
    const auto order = decode_order(*frame);
    if (!order.ok()) return lose_launcher(now);
    std::visit([&](const auto& one) { obey(one, now); }, *order);
  }
  if (!alive) lose_launcher(now);
}

void Agent::obey(const StartOrder& order, Time) {
  if (phase_ != Phase::Waiting) return;
  phase_ = Phase::Running;
  if (const Status status = start(order); !status.ok()) {
    say(true, status.message());
    obey(SignalOrder{SIGKILL}, {});
  }
}

// SIGKILL reaches everything that the ranks have started; the others go to where a terminal would send them.
void Agent::obey(const SignalOrder& order, Time) {
  if (order.signal == SIGKILL) {
    os::signal_descendants(SIGKILL);
    return;
  }
  for (const auto& rank : ranks_) rank->signal(order.signal);
}

void Agent::obey(const Credit& order, Time) {
  credit_ += order.bytes;
}

Status Agent::start(const StartOrder& order) {
  RONDE_TRY(os::make_private_folder(order.run_dir));
  run_dir_ = order.run_dir;
  RONDE_TRY(member::write_key_file(order.run_dir + "/key", order.key));
  RONDE_ASSIGN(errors_, os::make_pipe());
  RONDE_TRY(os::set_nonblocking(errors_.read));
  Environment env = order.host.env;
  start_broker(order, env);
  memory_kills_ = os::count_memory_kills();
  RankLaunch launch{.order = order,
                    .env = std::move(env),
                    .errors = errors_.write,
                    .mask = signals_.original_mask(),
                    .descriptor_limit = os::raise_descriptor_limit()};
  RONDE_TRY(launch.take_descriptors());
  for (const auto& plan : order.host.ranks) {
    auto rank = std::make_unique<RankProcess>(plan.rank, plan.local_rank, &ended_);
    RONDE_TRY(rank->start(launch, plan, events_));
    report(RankStarted{plan.rank, rank->pid()});
    ranks_.push_back(std::move(rank));
    ++running_;
  }
  return {};
}

// Without it the ranks talk over TCP, and say so themselves.
void Agent::start_broker(const StartOrder& order, Environment& env) {
  const std::string name = member::random_broker_name();
  auto broker = member::BrokerServer::start(name, order.key);
  if (broker.ok()) {
    broker_ = std::move(broker).value();
    set_variable(env, "RONDE_BROKER", name);
  } else {
    unset_variable(env, "RONDE_BROKER");
    say(false, cat("no shared memory between the ranks: ", broker.status().message()));
  }
}

void Agent::take_endings() {
  for (auto failed = os::take_spawn_error(errors_.read); failed; failed = os::take_spawn_error(errors_.read)) {
    for (auto& rank : ranks_) {
      if (rank->rank() == failed->tag) rank->start_error = failed->error;
    }
  }
  for (const int local_rank : std::exchange(ended_, {})) {
    RankProcess& rank = *ranks_[static_cast<size_t>(local_rank)];
    if (const auto exit = rank.reap(events_)) end_rank(rank, *exit);
  }
}

// Orphans that have ended. Ranks are reaped by their descriptors only, which keep the order of their deaths.
void Agent::reap_strangers() {
  if (!std::exchange(strangers_, false)) return;
  std::vector<pid_t> pids;
  for (const auto& rank : ranks_) {
    if (rank->alive()) pids.push_back(rank->pid());
  }
  os::reap_strangers(pids);
}

void Agent::end_rank(RankProcess& rank, const os::Exit& exit) {
  --running_;
  Ending ending{exit.by_signal ? Ending::Kind::Killed : Ending::Kind::Exited, exit.code, killed_by_kernel(exit)};
  if (rank.start_error != 0) ending = {Ending::Kind::NotStarted, rank.start_error, false};
  report(RankEnded{rank.rank(), ending});
}

bool Agent::killed_by_kernel(const os::Exit& exit) {
  if (!exit.by_signal || exit.code != SIGKILL || !memory_kills_) return false;
  const auto kills = os::count_memory_kills();
  const bool more = kills && *kills > *memory_kills_;
  if (more) memory_kills_ = kills;
  return more;
}

void Agent::pass_output() {
  for (auto& rank : ranks_) {
    for (int stream = 1; stream <= 2; ++stream) pass_output(*rank, stream);
  }
}

void Agent::pass_output(RankProcess& rank, int stream) {
  if (!rank.readable(stream) || !may_pass()) return;
  std::array<char, kMaxOutputBytes> piece;
  const size_t most = launcher_lost_ ? piece.size() : std::min(piece.size(), credit_);
  const auto got = rank.read(stream, std::span(piece).first(most));
  if (got.bytes > 0 && !launcher_lost_) {
    credit_ -= got.bytes;
    report(RankOutput{rank.rank(), stream, std::string(piece.data(), got.bytes)});
  }
  // When every process has ended, a silent pipe is held by a stranger.
  if (got.ended || (got.bytes == 0 && phase_ == Phase::Draining)) {
    rank.close(stream, events_);
    report(RankClosed{rank.rank(), stream});
  }
}

void Agent::lose_launcher(Time now) {
  if (std::exchange(launcher_lost_, true)) return;
  end_all(now, kOrphanPatience);
}

void Agent::end_all(Time now, Duration patience) {
  if (std::exchange(termed_, true)) return;
  os::signal_descendants(SIGTERM);
  kill_at_ = now + patience;
}

void Agent::advance(Time now) {
  if (kill_at_ <= now) {
    os::signal_descendants(SIGKILL);
    kill_at_ = ++kills_ < kMaxKills ? now + kKillAgain : kNever;
  }
  if (phase_ == Phase::Waiting && launcher_lost_) phase_ = Phase::Draining;
  if (phase_ == Phase::Running && running_ == 0) phase_ = Phase::Sweeping;
  if (phase_ == Phase::Sweeping) sweep(now);
  if (phase_ == Phase::Draining) {
    kill_at_ = kNever;
    pass_output();
    const bool silent = std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->closed(); });
    if (silent) clean();
  }
}

void Agent::sweep(Time now) {
  if (!os::reap_strangers({}) || kills_ >= kMaxKills) {
    phase_ = Phase::Draining;
    for (auto& rank : ranks_) rank->look_again();
    return;
  }
  end_all(now, kSweepPatience);
}

void Agent::clean() {
  broker_.reset();
  if (!run_dir_.empty()) os::remove_folder(run_dir_);
  report(AgentDone{});
  phase_ = Phase::Done;
}

Result<std::unique_ptr<Agent>> make_agent(os::Fd channel) {
  constexpr std::array kWatched = {SIGCHLD, SIGTERM};
  constexpr std::array kDiscarded = {SIGPIPE, SIGINT, SIGHUP, SIGQUIT};
  RONDE_ASSIGN(auto signals, os::Signals::watch(kWatched, kDiscarded));
  RONDE_TRY(os::become_subreaper());
  RONDE_ASSIGN(auto events, os::EventSet::create());
  return std::make_unique<Agent>(std::move(channel), std::move(signals), std::move(events));
}

}  // namespace

int run_agent(os::Fd channel) {
  auto agent = make_agent(std::move(channel));
  return agent.ok() ? (*agent)->run() : 1;
}

}  // namespace ronde::launch
