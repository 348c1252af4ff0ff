// SPDX-License-Identifier: Apache-2.0
// One step of the driver: submissions, control, one block of each running batch. The progress lock is held.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "engine/engine.h"

namespace ronde::engine {
namespace {

// Memory for an output whose size depends on all ranks; `rows`: how many come from each, where that is known to users.
Status allocate_output(Handle& handle, const Shape& shape, DType dtype, std::span<const int64_t> rows) {
  OwnedOutput& output = handle.output;
  output.shape = shape;
  output.bytes = shape.count() * static_cast<int64_t>(size_of(dtype));
  const auto rows_at = (static_cast<size_t>(output.bytes) + 7) / 8 * 8;
  output.data.reset(std::malloc(rows_at + std::max<size_t>(rows.size(), 1) * sizeof(int64_t)));
  if (!output.data) {
    return Status(Code::ResourceExhausted, cat(handle.what, ": no memory for an output of ", output.bytes, " bytes"));
  }
  auto* const kept = reinterpret_cast<int64_t*>(static_cast<std::byte*>(output.data.get()) + rows_at);
  std::ranges::copy(rows, kept);
  output.first_dims = kept;
  output.member_count = static_cast<int32_t>(rows.size());
  handle.binding.out = output.data.get();
  return {};
}

}  // namespace

bool Engine::step() {
  const Time now = parts_.time.clock->now();
  bool worked = take_submissions();
  worked |= look_for_causes(now);
  if (!failed_ && !symptom_) worked |= pump_control(now);
  if (!failed_ && !symptom_) worked |= advance_batches();
  worked |= check_deadlines(now);
  finish_leave();
  if (worked) publish_counters();
  return worked;
}

bool Engine::take_submissions() {
  if (submissions_.empty()) return false;
  for (QueuedSubmission& submission : submissions_.take()) take(std::move(submission));
  return true;
}

void Engine::take(QueuedSubmission submission) {
  if (submission.leave) {
    leave_ticket_ = submission.tickets[0];
    if (!failed_) control_.member().leave();
    return;
  }
  if (submission.flush) {
    if (!failed_) control_.member().flush();
    return;
  }
  Status refused;
  if (failed_) {
    refused = *failed_;
  } else if (leave_ticket_ != 0) {
    refused = Status(Code::NotInitialized, "this rank has shut down; call init() first");
  } else {
    refused = control_.member().submit(submission.requests, submission.tickets, submission.more);
  }
  if (refused.ok()) return;
  for (const Ticket ticket : submission.tickets) give_up(ticket, refused);
}

bool Engine::pump_control(Time now) {
  events_.clear();
  const Result<bool> moved = control_.pump(now, events_);
  for (coord::Event& event : std::exchange(events_, {})) {
    std::visit([&](auto& e) { handle(std::move(e), now); }, event);
  }
  if (!moved.ok()) {
    suspect(moved.status(), now);
    return true;
  }
  return *moved;
}

void Engine::handle(coord::BatchReady event, Time now) {
  Status status = failed_.value_or(Status());  // by what came before it in the same frame
  if (status.ok()) status = begin(std::move(event.batch), event.tickets, now);
  if (status.ok()) return;
  abort(status);
  for (const Ticket ticket : event.tickets) {
    if (handles_.find(ticket)) give_up(ticket, status);
  }
}

Status Engine::begin(Batch batch, const std::vector<Ticket>& tickets, Time now) {
  BoundBatch bound{.batch = std::move(batch), .bindings = {}, .allocate = {}};
  const Output output = row(bound.batch.op).output;
  const size_t self = index_of(bound.batch, parts_.topology.rank);
  for (size_t t = 0; t < tickets.size(); ++t) {
    const auto handle = handles_.find(tickets[t]);
    if (!handle) {
      return Status(Code::Internal, cat("batch ", bound.batch.number, " has a tensor '", bound.batch.tensors[t].name,
                                        "' that this rank did not submit"));
    }
    if (output == Output::AllRows || output == Output::OwnRows) {
      const Shape shape = output_shape(bound.batch, t, self);
      RONDE_TRY(allocate_output(*handle, shape, bound.batch.dtype, bound.batch.tensors[t].first_dims));
    }
    bound.bindings.push_back(handle->binding);
  }
  if (output == Output::Exchanged) {
    bound.allocate = [this, ticket = tickets[0], dtype = bound.batch.dtype, shape = bound.batch.tensors[0].shape](
                         size_t, std::span<const int64_t> rows) -> Result<std::byte*> {
      const auto handle = handles_.find(ticket);
      const Shape all = shape.with_first(std::accumulate(rows.begin(), rows.end(), int64_t{0}));
      RONDE_TRY(allocate_output(*handle, all, dtype, rows));
      return static_cast<std::byte*>(handle->binding.out);
    };
  }
  return batches_.push(std::move(bound), tickets, now);
}

void Engine::handle(coord::TicketFailed event, Time) {
  complete(event.ticket, event.status);
}

void Engine::handle(coord::RankLeft event, Time) {
  if (event.rank == parts_.topology.rank) tell_leave();
  left_.insert(event.rank);
}

void Engine::handle(coord::SetAdded event, Time) {
  sets_.add(event.id, std::move(event.members));
  const auto handle = handles_.find(event.ticket);
  RONDE_CHECK(handle != nullptr, "all ranks have submitted a change of sets");
  const Status status = allocate_output(*handle, Shape{1}, DType::I64, {});
  if (status.ok()) *static_cast<int64_t*>(handle->output.data.get()) = event.id;
  complete(event.ticket, status);
}

void Engine::handle(coord::SetRemoved event, Time) {
  sets_.remove(event.id);
  complete(event.ticket, {});
}

// As soon as the order has it: who fails because this rank is gone may be quicker than this rank's end.
void Engine::tell_leave() {
  if (parts_.store) (void)parts_.store->tell_leave(static_cast<uint32_t>(left_.size()));
}

bool Engine::advance_batches() {
  if (batches_.empty()) return false;
  const Result<bool> worked = batches_.advance([this](Batches::Entry& entry) {
    ++counted_.batches;
    for (const Ticket ticket : entry.tickets) complete(ticket, {});
  });
  if (worked.ok()) return *worked;
  suspect(worked.status(), parts_.time.clock->now());
  return true;
}

void Engine::complete(Ticket ticket, const Status& status) {
  const auto handle = handles_.find(ticket);
  RONDE_CHECK(handle != nullptr, "a handle is completed once");
  if (!status.ok()) handle->output = {};
  submissions_.release_name(handle->set, handle->name);
  handles_.complete(*handle, status);
  ++counted_.tensors;
}

// Ends an operation for a reason that is not its own.
void Engine::give_up(Ticket ticket, const Status& cause) {
  const auto handle = handles_.find(ticket);
  const bool is_named = !handle || cause.message().starts_with(handle->what);
  complete(ticket, is_named ? cause : cause.with_context(handle->what));
}

// The leave is over when the order has it, what was decided before it has run, and the others were told.
void Engine::finish_leave() {
  if (leave_ticket_ == 0) return;
  const bool told = has_left() && !control_.has_unsent();
  const bool nobody_answers = left_.contains(0);
  if (!failed_ && !(batches_.empty() && (told || nobody_answers))) return;
  const auto handle = handles_.find(leave_ticket_);
  if (handle && !handle->complete) handles_.complete(*handle, {});
}

void Engine::publish_counters() {
  counted_.control_sent = control_.bytes_sent();
  counted_.control_received = control_.bytes_received();
  counted_.full_requests = control_.member().whole_entries();
  if (parts_.links) counted_.data_sent = parts_.links->bytes_sent();
}

}  // namespace ronde::engine
