// SPDX-License-Identifier: Apache-2.0
// A job as the launcher holds it: everything is there, and the agent waits for the order to start the ranks.
#pragma once

#include <memory>
#include <string>

#include "launch/agent_process.h"
#include "launch/frames.h"
#include "launch/job_output.h"
#include "launch/mailbox.h"
#include "launch/options.h"
#include "launch/plan.h"
#include "member/store.h"
#include "os/event_set.h"
#include "os/signals.h"

namespace ronde::launch {

// In the order of the making.
struct Job {
  os::Signals signals;
  os::EventSet events;
  std::string id;
  StartOrder order;
  StartPlan plan;
  std::unique_ptr<AgentProcess> agent;
  std::unique_ptr<JobOutput> output;
  std::unique_ptr<Mailbox> mailbox;
  std::unique_ptr<member::StoreServer> store;
  int lifeline = -1;
  std::string scratch;
};

// Starts the store, the output and the agent, whose ranks wait for its order; the agent before the first thread of
// this process. `program` is the path of the command.
Result<Job> start_job(const RunOptions& options, const Environment& env, const std::string& program);

}  // namespace ronde::launch
