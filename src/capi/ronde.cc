// SPDX-License-Identifier: Apache-2.0
// The C ABI: arguments checked and turned into values, Status turned into a code and a text. No policy.
#include "ronde/ronde.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/log.h"
#include "capi/arguments.h"
#include "capi/process.h"
#include "capi/start.h"
#include "engine/engine.h"

namespace {

thread_local std::string last_error;

int report(const ronde::Status& status) {
  if (!status.ok()) last_error = status.message();
  return static_cast<int>(status.code());
}

}  // namespace

// The user's handle on an engine. Never freed: calls after shutdown get an error, not a dangling pointer.
struct ronde_engine {
  std::mutex mutex;  // guards engine
  std::shared_ptr<ronde::engine::Engine> engine;
  std::string transport;
  std::string transport_reason;
};

namespace {

using ronde::Code;
using ronde::Result;
using ronde::Status;
using ronde::engine::Engine;

Result<std::shared_ptr<Engine>> running(ronde_engine* engine) {
  if (engine == nullptr) return Status(Code::InvalidArgument, "no engine was given");
  RONDE_TRY(ronde::capi::Process::instance().check_not_forked());
  const std::lock_guard lock(engine->mutex);
  if (engine->engine) return engine->engine;
  return Status(Code::NotInitialized, "ronde has been shut down; call init() first");
}

ronde::Time deadline_after(const Engine& engine, double seconds) {
  constexpr double kForever = 1e9;
  if (seconds < 0 || seconds > kForever) return ronde::kNever;
  return engine.clock().now() + std::chrono::duration_cast<ronde::Duration>(std::chrono::duration<double>(seconds));
}

// Fills as many bytes of the caller's struct as both sides know.
template <class T>
Status fill(T* out, T value) {
  if (out == nullptr || out->struct_size < sizeof(size_t)) {
    return Status(Code::InvalidArgument, "struct_size is not set: the caller must set it to sizeof of the struct");
  }
  value.struct_size = out->struct_size;
  std::memcpy(out, &value, std::min(out->struct_size, sizeof value));
  return {};
}

constexpr auto kLeaveLimit = std::chrono::seconds(10);

int submit_set_change(ronde_engine* engine, ronde::Request request, int64_t* handle) {
  Result<std::shared_ptr<Engine>> live = running(engine);
  if (!live.ok()) return report(live.status());
  const ronde::engine::Submission submission{.request = std::move(request), .binding = {}};
  Result<std::vector<ronde::engine::Ticket>> tickets = (*live)->submit({&submission, 1}, false);
  if (!tickets.ok()) return report(tickets.status());
  *handle = static_cast<int64_t>(tickets->front());
  return RONDE_OK;
}

}  // namespace

extern "C" {

const char* ronde_version(void) {
  return RONDE_VERSION;
}

const char* ronde_last_error(void) {
  return last_error.c_str();
}

int ronde_init(ronde_engine** out) {
  if (out == nullptr) return report(Status(Code::InvalidArgument, "no place for the engine was given"));
  if (Status status = ronde::capi::Process::instance().check_not_forked(); !status.ok()) return report(status);
  Result<std::shared_ptr<Engine>> started = ronde::capi::start_from_environment();
  if (!started.ok()) return report(started.status());
  auto* engine = new ronde_engine;
  engine->engine = std::move(started).value();
  engine->transport = engine->engine->transport();
  engine->transport_reason = engine->engine->transport_reason();
  ronde::capi::Process& process = ronde::capi::Process::instance();
  const std::lock_guard lock(process.init_mutex);
  process.handed_out.push_back(engine);
  *out = engine;
  return RONDE_OK;
}

int ronde_shutdown(ronde_engine* engine) {
  if (engine == nullptr) return report(Status(Code::InvalidArgument, "no engine was given"));
  if (Status status = ronde::capi::Process::instance().check_not_forked(); !status.ok()) return report(status);
  std::shared_ptr<Engine> leaving;
  {
    const std::lock_guard lock(engine->mutex);
    leaving = std::exchange(engine->engine, nullptr);
  }
  if (leaving) leaving->leave(leaving->clock().now() + kLeaveLimit);
  return RONDE_OK;
}

int ronde_is_running(ronde_engine* engine) {
  return running(engine).ok() ? 1 : 0;
}

int ronde_get_topology(ronde_engine* engine, ronde_topology* out) {
  Result<std::shared_ptr<Engine>> live = running(engine);
  if (!live.ok()) return report(live.status());
  const ronde::engine::Topology& topology = (*live)->topology();
  return report(fill(out, {.struct_size = 0,
                           .rank = topology.rank,
                           .size = topology.size,
                           .local_rank = topology.local_rank,
                           .local_size = topology.local_size,
                           .cross_rank = topology.cross_rank,
                           .cross_size = topology.cross_size,
                           .is_homogeneous = topology.is_homogeneous,
                           .epoch = topology.epoch}));
}

int ronde_submit(ronde_engine* engine, const ronde_tensor* tensors, size_t count, uint32_t flags, int64_t* handles) {
  Result<std::shared_ptr<Engine>> live = running(engine);
  if (!live.ok()) return report(live.status());
  Result<std::vector<ronde::engine::Submission>> submissions = ronde::capi::to_submissions(tensors, count);
  if (!submissions.ok()) return report(submissions.status());
  Result<std::vector<ronde::engine::Ticket>> tickets = (*live)->submit(*submissions, (flags & RONDE_MORE) != 0);
  if (!tickets.ok()) return report(tickets.status());
  std::ranges::transform(*tickets, handles, [](auto ticket) { return static_cast<int64_t>(ticket); });
  return RONDE_OK;
}

int ronde_add_set(ronde_engine* engine, const int32_t* ranks, size_t count, int64_t* handle) {
  if (ranks == nullptr || count == 0)
    return report(Status(Code::InvalidArgument, "a process set has at least one rank"));
  return submit_set_change(engine, ronde::make_set_request(ronde::OpKind::AddSet, {ranks, ranks + count}), handle);
}

int ronde_remove_set(ronde_engine* engine, uint32_t set, int64_t* handle) {
  const auto id = static_cast<int32_t>(set);
  return submit_set_change(engine, ronde::make_set_request(ronde::OpKind::RemoveSet, {id}), handle);
}

int ronde_flush(ronde_engine* engine) {
  Result<std::shared_ptr<Engine>> live = running(engine);
  if (!live.ok()) return report(live.status());
  (*live)->flush();
  return RONDE_OK;
}

int ronde_poll(ronde_engine* engine, int64_t handle) {
  Result<std::shared_ptr<Engine>> live = running(engine);
  if (!live.ok()) return report(live.status()), -1;
  const std::optional<bool> complete = (*live)->poll(static_cast<ronde::engine::Ticket>(handle));
  if (complete) return *complete ? 1 : 0;
  report(Status(Code::InvalidArgument, ronde::cat("there is no operation with handle ", handle)));
  return -1;
}

int ronde_wait(ronde_engine* engine, int64_t handle, double seconds) {
  Result<std::shared_ptr<Engine>> live = running(engine);
  if (!live.ok()) return report(live.status());
  return report((*live)->wait(static_cast<ronde::engine::Ticket>(handle), deadline_after(**live, seconds)));
}

int ronde_take_output(ronde_engine* engine, int64_t handle, ronde_output* out) {
  Result<std::shared_ptr<Engine>> live = running(engine);
  if (!live.ok()) return report(live.status());
  Result<ronde::engine::OwnedOutput> output = (*live)->take_output(static_cast<ronde::engine::Ticket>(handle));
  if (!output.ok()) return report(output.status());
  ronde_output value{};
  value.bytes = output->bytes;
  value.ndim = static_cast<int32_t>(output->shape.ndim());
  std::ranges::copy(output->shape.dims(), value.dims);
  value.member_count = output->member_count;
  value.first_dims = output->first_dims;
  value.data = output->data.release();
  return report(fill(out, value));
}

void ronde_free(void* data) {
  std::free(data);
}

int ronde_tell_failure(ronde_engine* engine, int32_t code, const char* text) {
  Result<std::shared_ptr<Engine>> live = running(engine);
  if (!live.ok()) return report(live.status());
  const bool is_error = code > RONDE_OK && code <= RONDE_INTERRUPTED;
  return report((*live)->tell_failure(
      ronde::Status(is_error ? static_cast<ronde::Code>(code) : ronde::Code::Internal, text != nullptr ? text : "")));
}

int ronde_get_counters(ronde_engine* engine, ronde_counters* out) {
  Result<std::shared_ptr<Engine>> live = running(engine);
  if (!live.ok()) return report(live.status());
  const ronde::engine::Counters counters = (*live)->counters();
  return report(fill(out, {.struct_size = 0,
                           .batches = counters.batches,
                           .tensors = counters.tensors,
                           .control_bytes_sent = counters.control_bytes_sent,
                           .control_bytes_received = counters.control_bytes_received,
                           .full_requests = counters.full_requests,
                           .wakeups = counters.wakeups,
                           .data_bytes_sent = counters.data_bytes_sent}));
}

const char* ronde_transport(ronde_engine* engine, const char** reason) {
  if (engine == nullptr) return "";
  if (reason != nullptr) *reason = engine->transport_reason.c_str();
  return engine->transport.c_str();
}

}  // extern "C"
