// SPDX-License-Identifier: Apache-2.0
#include "launch/policy.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace ronde::launch {
namespace {

constexpr std::string_view kQuietly = "exited with status 0 without shutting down";

}  // namespace

Policy::Policy(Options options)
    : options_(std::move(options)), ranks_(options_.hosts.size()), running_(static_cast<int>(ranks_.size())) {}

std::vector<Action> Policy::step(const Event& event, Time now) {
  std::visit([&](const auto& one) { on(one, now); }, event);
  on(Tick{}, now);
  return std::exchange(actions_, {});
}

void Policy::on(const Started& event, Time) {
  ranks_[event.rank].pid = event.pid;
}

void Policy::on(const Ended& event, Time now) {
  Rank& rank = ranks_[event.rank];
  if (rank.ending) return;
  rank.ending = event.ending;
  rank.ended_by_us = event.ending.kind == Ending::Kind::Killed && sent_.contains(event.ending.code);
  rank.end_by = kNever;
  --running_;
  if (interrupt_ != 0 && blamed_ < 0) {
    publish(-1, Code::Aborted, cat("the job was interrupted by signal ", signal_text(interrupt_)));
    begin_to_end(now);
  } else if (!event.ending.clean()) {
    on_failure(event.rank, now);
  } else if (!has_left(event.rank) && quiet_ < 0) {
    quiet_ = event.rank;
    quiet_until_ = now + kLeavePatience;
  }
}

void Policy::on(const Told& event, Time now) {
  Rank& rank = ranks_[event.rank];
  if (!rank.told.empty()) return;
  rank.told = event.text;
  rank.told_code = event.code;
  if (blamed_ == event.rank) publish_at_ = std::min(publish_at_, now);
  if (!rank.ending) rank.end_by = now + kEndPatience;
}

// Whether somebody who left before this rank failed may be the cause, and has not ended yet.
bool Policy::may_suffer(int rank) const {
  const Rank& self = ranks_[rank];
  if (!self.told.empty() && self.told_code != Code::RankLeft) return false;  // it has a reason of its own
  const auto left_before = [&](const Rank& it) { return &it != &self && it.left < self.left; };
  if (std::ranges::any_of(ranks_, [&](const Rank& it) { return left_before(it) && !it.ending; })) return true;
  // Some of whom it is not known yet that they have left.
  const auto ended = std::ranges::count_if(ranks_, [&](const Rank& it) { return left_before(it) && it.ending; });
  return has_left(rank) ? ended < self.left : self.told_code == Code::RankLeft && ended == 0 && running_ > 0;
}

void Policy::on_failure(int rank, Time now) {
  if (!may_suffer(rank)) return blame(rank, now);
  if (suspect_ >= 0) return;
  suspect_ = rank;
  suspect_until_ = now + kLeftPatience;
}

void Policy::on(const Arrived&, Time) {
  arrived_ = true;
  for (Rank& rank : ranks_) rank.left = kStays;
}

void Policy::on(const LeftJob& event, Time) {
  ranks_[event.rank].left = event.order;
  if (quiet_ == event.rank) quiet_until_ = kNever;
}

void Policy::on(const Interrupted& event, Time now) {
  const bool first = interrupt_ == 0;
  if (first) {
    interrupt_ = event.signal;
    interrupted_at_ = now;
  }
  if (first && !event.again) {
    // Nobody reads the output any more: there is no handler to wait for.
    if (event.signal == SIGPIPE) begin_to_end(now);
    signal(event.signal == SIGPIPE ? SIGTERM : event.signal);
  } else if (event.again || now - interrupted_at_ >= kEcho) {
    signal(SIGKILL);
    killed_ = true;
  }
}

void Policy::on(const AgentLost& event, Time) {
  if (finished()) return;
  agent_lost_ = event;
  running_ = 0;
  const std::string& host = options_.hosts.empty() ? std::string() : options_.hosts[0];
  publish(-1, Code::PeerLost, cat("the agent of host ", host, " (pid ", event.pid, ") ", describe(event.ending)));
}

void Policy::on(const Tick&, Time now) {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].end_by <= now) {
      ranks_[i].end_by = kNever;
      on_failure(static_cast<int>(i), now);
    }
  }
  if (suspect_ >= 0 && blamed_ < 0 && (suspect_until_ <= now || !may_suffer(suspect_))) blame(suspect_, now);
  if (publish_at_ <= now) {
    publish(blamed_, Code::PeerLost, cat(name(blamed_, true), " ", what_happened(blamed_)));
  }
  if (quiet_until_ <= now) {
    quiet_until_ = kNever;
    if (running_ > 0) publish(quiet_, Code::PeerLost, cat(name(quiet_, true), " ", kQuietly));
  }
  if (term_at_ <= now) {
    term_at_ = kNever;
    term_sent_ = true;
    signal(SIGTERM);
  }
  if (kill_at_ <= now) {
    kill_at_ = kNever;
    signal(SIGKILL);
  }
}

void Policy::blame(int rank, Time now) {
  if (blamed_ >= 0 || interrupt_ != 0) return;
  blamed_ = rank;
  const auto& ending = ranks_[rank].ending;
  others_ = running_ - (ending ? 0 : 1);
  const bool may_tell = ending && ending->kind == Ending::Kind::Exited && ranks_[rank].told.empty();
  publish_at_ = may_tell ? now + kTellPatience : now;
  begin_to_end(now);
}

void Policy::publish(int rank, Code code, std::string text) {
  publish_at_ = kNever;
  if (std::exchange(published_, true)) return;
  actions_.push_back({member::Cause{rank, Status(code, std::move(text))}, 0});
}

void Policy::signal(int number) {
  sent_.insert(number);
  actions_.push_back({std::nullopt, number});
}

void Policy::begin_to_end(Time now) {
  if (term_sent_ || term_at_ != kNever) return;
  term_at_ = now + options_.grace;
  kill_at_ = term_at_ + kKillAfter;
}

Time Policy::next_deadline() const {
  if (finished()) return kNever;
  Time next = std::min({publish_at_, quiet_until_, term_at_, kill_at_});
  if (blamed_ < 0) next = std::min(next, suspect_until_);
  for (const Rank& rank : ranks_) next = std::min(next, rank.end_by);
  return next;
}

std::string Policy::name(int rank, bool with_host) const {
  const std::string pid = ranks_[rank].pid < 0 ? "" : cat("pid ", ranks_[rank].pid);
  const std::string host = with_host ? cat("host ", options_.hosts[rank]) : "";
  const std::string both = cat(host, host.empty() || pid.empty() ? "" : ", ", pid);
  return both.empty() ? cat("rank ", rank) : cat("rank ", rank, " (", both, ")");
}

std::string Policy::what_happened(int rank) const {
  const Rank& it = ranks_[rank];
  return it.ending ? describe(*it.ending, it.told) : cat("failed: ", it.told);
}

Verdict Policy::blaming() const {
  const Rank& rank = ranks_[blamed_];
  // One that told its failure and then had to be ended failed with its own words, not by our signal.
  const bool by_us = !rank.ending || (rank.ended_by_us && !rank.told.empty());
  const std::string what = by_us ? cat("failed: ", rank.told) : describe(*rank.ending, rank.told);
  const std::string rest =
      others_ == 0 ? "" : cat("; the other ", others_ == 1 ? "rank was" : cat(others_, " ranks were"), " ended");
  return {by_us ? 1 : exit_status(*rank.ending), blamed_, cat(name(blamed_, false), " ", what, rest, origin())};
}

// The rank that fails first may have failed because another, to which it spoke, went without a word.
std::string Policy::origin() const {
  const bool spoke = arrived_ && quiet_ >= 0 && !has_left(quiet_);
  if (!spoke || ranks_[blamed_].told.find(kQuietly) != std::string::npos) return "";
  return cat("; ", name(quiet_, false), " had ", kQuietly);
}

Verdict Policy::verdict() const {
  if (blamed_ >= 0) return blaming();
  if (interrupt_ != 0) {
    return {128 + interrupt_, -1,
            cat("interrupted by signal ", signal_text(interrupt_), killed_ ? "; the ranks were killed" : "")};
  }
  if (agent_lost_) {
    const int status = exit_status(agent_lost_->ending);
    return {status == 0 ? 1 : status, -1,
            cat("the agent (pid ", agent_lost_->pid, ") ", describe(agent_lost_->ending),
                "; its ranks were ended with it")};
  }
  return {};
}

}  // namespace ronde::launch
