// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_process.h"

#include <utility>

namespace ronde::launch {

Status RankLaunch::take_descriptors() {
  RONDE_ASSIGN(null, os::open_null());
  for (auto [number, fd] : {std::pair(order.stdin_fd, &input), {order.stdout_fd, &output}, {order.stderr_fd, &error}}) {
    if (number < 0) continue;
    os::set_close_on_exec(number, true);
    *fd = os::Fd(number);
  }
  return {};
}

RankProcess::RankProcess(int rank, int local_rank, std::vector<int>* ended) : rank_(rank) {
  death_.local_rank = local_rank;
  death_.ended = ended;
}

Status RankProcess::start(const RankLaunch& launch, const RankPlan& plan, os::EventSet& events) {
  os::Program program{.path = launch.order.program,
                      .arguments = launch.order.command,
                      .environment = with_additions(launch.env, plan.env),
                      .inherited = {},
                      .own_session = launch.order.group < 0,
                      .group = launch.order.group,
                      .mask = launch.mask,
                      .descriptor_limit = launch.descriptor_limit};
  own_group_ = program.own_session;
  const bool has_input = plan.rank == 0 && launch.input.valid();
  program.stdin_fd = has_input ? launch.input.get() : launch.null.get();
  os::Pipe pipes[2];
  RONDE_TRY(open_streams(launch, program, pipes));
  RONDE_ASSIGN(child_, os::spawn(program, launch.errors, rank_));
  for (int i = 0; i < 2; ++i) {
    streams_[i].fd = std::move(pipes[i].read);
    if (streams_[i].fd.valid()) RONDE_TRY(events.add(streams_[i].fd.get(), &streams_[i]));
  }
  return events.add(child_.pidfd.get(), &death_);
}

Status RankProcess::open_streams(const RankLaunch& launch, os::Program& program, os::Pipe (&pipes)[2]) {
  if (launch.order.inherit_output) {
    program.stdout_fd = launch.output.get();
    program.stderr_fd = launch.error.get();
    return {};
  }
  for (auto& pipe : pipes) {
    RONDE_ASSIGN(pipe, os::make_pipe());
    RONDE_TRY(os::set_nonblocking(pipe.read));
  }
  program.stdout_fd = pipes[0].write.get();
  program.stderr_fd = pipes[1].write.get();
  return {};
}

void RankProcess::signal(int number) const {
  if (!child_.pidfd.valid()) return;
  if (own_group_) {
    os::signal_group(child_, number);
  } else {
    os::signal_process(child_.pidfd, number);
  }
}

std::optional<os::Exit> RankProcess::reap(os::EventSet& events) {
  if (!child_.pidfd.valid()) return std::nullopt;
  const auto exit = os::reap(child_.pidfd);
  if (exit) {
    events.remove(child_.pidfd.get());
    child_.pidfd.reset();
  }
  return exit;
}

os::PipeRead RankProcess::read(int stream, std::span<char> into) {
  Stream& it = streams_[stream - 1];
  const auto got = os::read_pipe(it.fd, into);
  if (got.bytes == 0) it.ready = false;
  return got;
}

void RankProcess::close(int stream, os::EventSet& events) {
  Stream& it = streams_[stream - 1];
  events.remove(it.fd.get());
  it.fd.reset();
  it.ready = false;
}

void RankProcess::look_again() {
  for (auto& stream : streams_) stream.ready = true;
}

}  // namespace ronde::launch
