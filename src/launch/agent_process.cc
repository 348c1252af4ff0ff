// SPDX-License-Identifier: Apache-2.0
#include "launch/agent_process.h"

#include <algorithm>
#include <utility>

#include "os/event_set.h"
#include "os/pipe.h"
#include "os/procfs.h"

namespace ronde::launch {
namespace {

constexpr Duration kSweepTime = std::chrono::seconds(5);
constexpr Duration kSweepStep = std::chrono::milliseconds(20);

// Copies under numbers that the agent inherits.
Status copy_streams(StartOrder& order, os::Program& program, os::Fd (&copies)[3]) {
  int* numbers[] = {&order.stdin_fd, &order.stdout_fd, &order.stderr_fd};
  for (int stream = 0; stream < 3; ++stream) {
    if (stream > 0 && !order.inherit_output) continue;
    RONDE_ASSIGN(copies[stream], os::duplicate(stream));
    *numbers[stream] = copies[stream].get();
    program.inherited.push_back(copies[stream].get());
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<AgentProcess>> AgentProcess::start(StartOrder& order, const Environment& env,
                                                          const sigset_t& mask) {
  RONDE_ASSIGN(auto sockets, os::make_socket_pair());
  RONDE_ASSIGN(const auto null, os::open_null());
  RONDE_ASSIGN(const auto errors, os::make_pipe());
  os::Program program{.path = os::own_program(),
                      .arguments = {"ronde", "agent"},
                      .environment = env,
                      .stdin_fd = sockets.second.get(),
                      .stdout_fd = null.get(),
                      .inherited = {},
                      .own_session = order.group < 0,
                      .group = order.group < 0 ? -1 : 0,
                      .die_with_parent = false,
                      .mask = mask};
  os::Fd copies[3];
  RONDE_TRY(copy_streams(order, program, copies));
  set_variable(program.environment, "RONDE_JOB", order.job);
  RONDE_ASSIGN(auto child, os::spawn(program, errors.write, 0));
  return std::unique_ptr<AgentProcess>(new AgentProcess(Channel(std::move(sockets.first)), std::move(child)));
}

const std::optional<os::Exit>& AgentProcess::exit() {
  if (!exit_) exit_ = os::reap(child_.pidfd);
  return exit_;
}

void sweep_job(const std::string& job, const std::set<int>& rank_pids, os::Signals& signals) {
  const std::string marker = job_marker(job);
  const Time deadline = SteadyClock().now() + kSweepTime;
  for (;;) {
    const auto orphans = os::descendants(os::list_processes(), os::own_pid());
    const auto belongs = [&](const os::ProcessInfo& process) {
      if (os::has_environment(process.pid, marker)) return true;
      const bool ours = std::find(orphans.begin(), orphans.end(), process.pid) != orphans.end();
      return ours && rank_pids.contains(process.session);
    };
    const int left = os::signal_processes(belongs, SIGKILL);
    os::reap_strangers({});
    const Time now = SteadyClock().now();
    if (left == 0 || now >= deadline) return;
    // Their ends arrive as SIGCHLD; new ones may have been started meanwhile.
    const int fd = signals.fd();
    os::sleep_until_readable({&fd, 1}, now + kSweepStep);
    while (signals.take()) {
    }
  }
}

}  // namespace ronde::launch
