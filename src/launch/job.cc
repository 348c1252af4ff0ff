// SPDX-License-Identifier: Apache-2.0
#include "launch/job.h"

#include <array>
#include <csignal>
#include <utility>

#include "os/cores.h"
#include "os/host.h"
#include "os/pipe.h"
#include "os/private_folder.h"
#include "os/process.h"
#include "os/socket.h"

namespace ronde::launch {
namespace {

Result<int> free_port() {
  RONDE_ASSIGN(const auto listener, os::listen_tcp({"127.0.0.1", 0}));
  return static_cast<int>(listener.bound.port);
}

Result<std::unique_ptr<member::StoreServer>> start_store(const member::Key& key, int size, Mailbox* mailbox) {
  // Who has the key may still give a wrong number of a rank; the store answers to that.
  const auto put = [mailbox, size](auto event) {
    if (event.rank >= 0 && event.rank < size) mailbox->put(std::move(event));
  };
  member::StoreServer::Callbacks callbacks;
  callbacks.on_open = [mailbox] { mailbox->put(Arrived{}); };
  callbacks.on_failure = [put](int32_t rank, const Status& what) { put(Told{rank, what.message(), what.code()}); };
  callbacks.on_leave = [put](int32_t rank, uint32_t order) { put(LeftJob{rank, static_cast<int>(order)}); };
  return member::StoreServer::start({.listen = {"127.0.0.1", 0}, .key = key, .size = size}, std::move(callbacks));
}

Result<os::Signals> watch_signals() {
  constexpr std::array kWatched = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  constexpr std::array kDiscarded = {SIGPIPE};
  return os::Signals::watch(kWatched, kDiscarded);
}

// How the only rank keeps the terminal: it writes where the launcher would, and if that is a terminal, it stays in the
// session and the process group in front of it.
void keep_terminal(StartOrder& order) {
  order.inherit_output = true;
  if (os::is_terminal(0) || os::is_terminal(1)) order.group = os::own_group();
}

}  // namespace

Result<Job> start_job(const RunOptions& options, const Environment& env, const std::string& program) {
  RONDE_ASSIGN(auto signals, watch_signals());
  RONDE_TRY(os::become_subreaper());
  RONDE_ASSIGN(auto events, os::EventSet::create());
  RONDE_ASSIGN(auto bell, os::Doorbell::create());
  Job job{.signals = std::move(signals),
          .events = std::move(events),
          .id = os::random_name(),
          .order = {},
          .plan = {},
          .agent = {},
          .output = {},
          .mailbox = std::make_unique<Mailbox>(std::move(bell)),
          .store = {},
          .lifeline = options.lifeline,
          .scratch = options.scratch};
  if (job.lifeline >= 0) os::set_close_on_exec(job.lifeline, true);
  RONDE_ASSIGN(auto streams, JobOutput::open(options));
  job.order.command = options.command;
  job.order.program = program;
  job.order.job = job.id;
  job.order.run_dir = cat(os::private_folder_base(), "/ronde-", job.id);
  job.order.key = member::random_key();
  if (options.np == 1 && options.output_dir.empty()) keep_terminal(job.order);
  RONDE_ASSIGN(job.agent, AgentProcess::start(job.order, env, job.signals.original_mask()));
  RONDE_ASSIGN(job.output, JobOutput::start(std::move(streams)));
  RONDE_ASSIGN(job.store, start_store(job.order.key, options.np, job.mailbox.get()));
  RONDE_ASSIGN(const int port, free_port());
  const JobFacts facts{.job = job.id,
                       .store = job.store->address().to_string(),
                       .run_dir = job.order.run_dir,
                       .master_addr = "127.0.0.1",
                       .master_port = port};
  const std::vector<HostSlots> hosts = {{os::host_name(), options.np, os::usable_cores()}};
  RONDE_ASSIGN(job.plan, make_plan(options, hosts, env, facts));
  job.order.host = job.plan.hosts[0];
  return job;
}

}  // namespace ronde::launch
