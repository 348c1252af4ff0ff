// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <numeric>

#include "engine/validate.h"

namespace ronde::engine {
namespace {

// Rank 0 answers the others for this long after its own leave.
constexpr Duration kServeAfterLeave = std::chrono::seconds(30);

std::optional<coord::CoordinatorOptions> coordinator_options(const Parts& parts,
                                                             std::function<std::string(Time)> remark) {
  if (parts.topology.rank != 0) return std::nullopt;
  const Settings& settings = parts.settings;
  return coord::CoordinatorOptions{.size = parts.topology.size,
                                   .cut_early = parts.links != nullptr,
                                   .batch_bytes = static_cast<int64_t>(settings.batch_bytes),
                                   .hold = settings.hold,
                                   .collective_timeout = settings.collective_timeout,
                                   .remark = std::move(remark),
                                   .max_frame_bytes = control::kMaxFrameBytes};
}

std::vector<control::Carrier*> carriers(const Parts& parts) {
  std::vector<control::Carrier*> out;
  for (const auto& carrier : parts.ranks) out.push_back(carrier.get());
  return out;
}

Handle& fill(Handle& handle, const Submission& submission, size_t ranks) {
  handle.set = submission.request.set;
  handle.name = submission.request.name;
  handle.what = describe(submission.request.signature, submission.request.name, 0);
  handle.binding = submission.binding;
  std::vector<int64_t>& splits = handle.binding.splits;
  if (row(submission.request.signature.op).output == Output::Exchanged && splits.empty()) {
    splits.assign(ranks, submission.request.first_dim / static_cast<int64_t>(ranks));
  }
  return handle;
}

}  // namespace

std::shared_ptr<Engine> Engine::start(Parts parts) {
  std::shared_ptr<Engine> engine(new Engine(std::move(parts)));
  engine->thread_ = std::thread([self = engine.get()] { self->loop(); });
  return engine;
}

Engine::Engine(Parts parts)
    : parts_(std::move(parts)),
      eager_(parts_.links != nullptr),
      sets_(parts_.topology.rank, parts_.topology.size),
      control_(parts_.topology.rank, parts_.topology.size, eager_,
               coordinator_options(parts_, [this](Time now) { return silent_ranks(now); }), parts_.coordinator.get(),
               carriers(parts_)),
      batches_(parts_.backends, parts_.topology.rank),
      waiting_(parts_.settings.spin, host_load(parts_.topology.local_size)),
      locals_(static_cast<size_t>(parts_.board->local_size())) {
  std::iota(locals_.begin(), locals_.end(), 0);
  if (parts_.store) {
    RONDE_CHECK(parts_.events->add(parts_.store->fd(), &store_source_).ok(), "an open socket can be watched");
  }
}

Engine::~Engine() {
  if (thread_.joinable()) stop_loop();
  if (parts_.store) parts_.events->remove(parts_.store->fd());
}

Result<std::vector<Ticket>> Engine::submit(std::span<const Submission> submissions, bool more) {
  size_t ranks = 0;  // of the set, which is one for all
  for (const Submission& submission : submissions) {
    RONDE_ASSIGN(const ProcessSets::Members members, sets_.members_for(submission.request.set));
    RONDE_TRY(validate(submission.request, submission.binding, *members));
    ranks = members->size();
  }
  QueuedSubmission queued;
  queued.more = more;
  std::vector<Ticket> tickets;
  for (const Submission& submission : submissions) {
    tickets.push_back(handles_.create([&](Handle& handle) { fill(handle, submission, ranks); })->ticket);
    queued.requests.push_back(submission.request);
  }
  queued.tickets = tickets;
  if (Status status = submissions_.push(std::move(queued)); !status.ok()) {
    for (const Ticket ticket : tickets) handles_.erase(ticket);
    return status;
  }
  // Where batches are cut while the step still runs, the driver has to see them coming.
  if (!more || eager_) wake_driver();
  return tickets;
}

void Engine::flush() {
  if (submissions_.push_flush()) wake_driver();
}

std::optional<bool> Engine::poll(Ticket ticket) {
  const auto handle = handles_.find(ticket);
  if (!handle) return std::nullopt;
  if (handle->complete.load(std::memory_order_acquire)) return true;
  flush();
  if (std::unique_lock progress(progress_, std::try_to_lock); progress.owns_lock()) {
    step();
    hand_over(std::move(progress));
  }
  return handle->complete.load(std::memory_order_acquire);
}

Status Engine::wait(Ticket ticket, Time deadline) {
  const auto handle = handles_.find(ticket);
  if (!handle) {
    return Status(Code::InvalidArgument,
                  cat("there is no operation with handle ", ticket, ": it was waited for already, or never begun"));
  }
  flush();
  while (!handle->complete.load(std::memory_order_acquire)) {
    if (parts_.time.clock->now() >= deadline)
      return Status(Code::Interrupted, cat(handle->what, " is not complete yet"));
    std::unique_lock progress(progress_, std::try_to_lock);
    if (progress.owns_lock()) {
      drive(deadline, *handle);
      hand_over(std::move(progress));
    } else {
      handles_.sleep(*handle, deadline);
    }
  }
  if (!handle->status.ok() || !handle->output.data) handles_.erase(ticket);
  return handle->status;
}

Result<OwnedOutput> Engine::take_output(Ticket ticket) {
  const auto handle = handles_.find(ticket);
  if (!handle || !handle->complete.load(std::memory_order_acquire) || !handle->output.data) {
    return Status(Code::InvalidArgument, cat("handle ", ticket, " has no output to be taken: wait for it first"));
  }
  handles_.erase(ticket);
  return std::move(handle->output);
}

void Engine::leave(Time deadline) {
  if (leave_begun_.exchange(true)) return;
  const auto handle = handles_.create([](Handle& h) { h.what = "shutdown"; });
  QueuedSubmission queued;
  queued.tickets = {handle->ticket};
  queued.leave = true;
  RONDE_CHECK(submissions_.push(std::move(queued)).ok(), "a leave has no name");
  wake_driver();
  if (wait(handle->ticket, deadline).code() == Code::Interrupted) {
    abandon_ = true;
    wake_driver();
  }
  const Time now = parts_.time.clock->now();
  std::unique_lock progress(progress_);
  if (!has_left()) tell_leave();  // the order has not got so far
  serve_until_ = now + kServeAfterLeave;
  const bool serve = serves(now);
  if (serve) {
    serving_self_ = shared_from_this();
    thread_.detach();
  }
  hand_over(std::move(progress));
  if (!serve) stop_loop();
}

Status Engine::tell_failure(const Status& what) {
  if (!parts_.store) return {};
  return parts_.store->tell_failure(what);
}

Counters Engine::counters() const {
  return {.batches = counted_.batches,
          .tensors = counted_.tensors,
          .control_bytes_sent = counted_.control_sent,
          .control_bytes_received = counted_.control_received,
          .full_requests = counted_.full_requests,
          .wakeups = counted_.wakeups,
          .data_bytes_sent = counted_.data_sent};
}

}  // namespace ronde::engine
