// SPDX-License-Identifier: Apache-2.0
// The agent as its launcher sees it, and what the launcher does if the agent is gone.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "launch/channel.h"
#include "launch/frames.h"
#include "os/process.h"
#include "os/signals.h"

namespace ronde::launch {

class AgentProcess {
 public:
  // Starts this program again as `ronde agent`. The three descriptors in `order` are filled in with copies of the
  // launcher's own streams, as far as the order wants them.
  static Result<std::unique_ptr<AgentProcess>> start(StartOrder& order, const Environment& env, const sigset_t& mask);

  Channel& channel() { return channel_; }
  int pid() const { return child_.pid; }
  int pidfd() const { return child_.pidfd.get(); }
  // How it ended, if it has; again and again the same.
  const std::optional<os::Exit>& exit();
  void kill() { os::signal_process(child_.pidfd, SIGKILL); }

 private:
  AgentProcess(Channel channel, os::Child child) : channel_(std::move(channel)), child_(std::move(child)) {}
  Channel channel_;
  os::Child child_;
  std::optional<os::Exit> exit_;
};

// Kills what a dead agent has left behind: everything that carries the job's marker, and whatever is in the session of
// one of its ranks and has become a descendant of this process. Waits until it is gone, a few seconds at most.
void sweep_job(const std::string& job, const std::set<int>& rank_pids, os::Signals& signals);

}  // namespace ronde::launch
