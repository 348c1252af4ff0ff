// SPDX-License-Identifier: Apache-2.0
#include "sim/program.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "base/text.h"

namespace ronde::sim {
namespace {

// What a step may use: requests as all ranks should submit them.
struct Slot {
  bool named;
  Call call;
};

class Author {
 public:
  explicit Author(uint64_t seed) : random_(seed) { out_.seed = seed; }
  Program write();

 private:
  void draw_conditions();
  void draw_fault();
  void draw_slots();
  void write_step(size_t step);
  void write_end();
  void write_fault();

  Request draw_request(std::string name);
  Use draw_use(const Slot& slot);
  void contradict(Use& use, const Slot& slot);
  Request mutated(const Request& request);
  void add_step_of(Rank rank, size_t first_use, const std::vector<bool>& named);
  std::vector<size_t> order_of(size_t uses, const std::vector<bool>& named);
  std::vector<Action>& script(Rank rank) { return out_.scripts[static_cast<size_t>(rank)]; }
  Rank draw_rank() { return static_cast<Rank>(below(random_, static_cast<size_t>(out_.size))); }

  Random random_;
  Program out_;
  std::vector<Slot> slots_;
  bool contradictions_ = false;
  size_t more_percent_ = 0;
};

Program Author::write() {
  draw_conditions();
  draw_fault();
  draw_slots();
  const size_t steps = 1 + below(random_, 5);
  for (size_t step = 0; step < steps; ++step) write_step(step);
  write_end();
  write_fault();
  return std::move(out_);
}

void Author::draw_conditions() {
  out_.size = static_cast<Rank>(1 + below(random_, 6));
  out_.scripts.resize(static_cast<size_t>(out_.size));
  out_.steady = chance(random_, 30);
  out_.transit = std::chrono::microseconds(1 + below(random_, 2000));
  for (Rank rank = 0; rank < out_.size; ++rank) {
    const size_t slowness = chance(random_, 20) ? 10'000 : 500;
    out_.think.push_back(std::chrono::microseconds(1 + below(random_, slowness)));
  }
  auto& options = out_.coordinator;
  options.size = out_.size;
  options.cut_early = chance(random_, 50);
  options.batch_bytes = static_cast<int64_t>(64) << below(random_, 12);
  options.max_frame_bytes = chance(random_, 50) ? 8192 : 65536;
  out_.eager = options.cut_early;
  more_percent_ = std::array{0, 50, 100}[below(random_, 3)];
}

void Author::draw_fault() {
  const bool others_can_fail = out_.size > 1 && !out_.steady;
  if (others_can_fail && chance(random_, 40)) {
    out_.fault = std::array{Fault::Leaves, Fault::Dies, Fault::Forgets}[below(random_, 3)];
    out_.culprit = draw_rank();
  }
  // A rank that forgets an operation is out of step: nothing may follow, nor be in doubt.
  contradictions_ = others_can_fail && out_.fault != Fault::Forgets && chance(random_, 60);
}

void Author::draw_slots() {
  const size_t slots = 1 + below(random_, chance(random_, 10) ? 120 : 15);
  const std::string prefix = chance(random_, 10) ? std::string(500, 'n') : "t";
  for (size_t i = 0; i < slots; ++i) {
    Slot slot{chance(random_, 75), {}};
    const size_t tensors = chance(random_, 20) ? 2 + below(random_, 3) : 1;
    for (size_t k = 0; k < tensors; ++k) {
      slot.call.push_back(draw_request(slot.named ? cat(prefix, i, ".", k) : std::string()));
    }
    slots_.push_back(std::move(slot));
  }
}

Request Author::draw_request(std::string name) {
  const auto op = std::array{OpKind::Allreduce, OpKind::Allreduce, OpKind::Allreduce,
                             OpKind::Broadcast, OpKind::Allgather, OpKind::Barrier}[below(random_, 6)];
  const auto dtype = std::array{DType::F32, DType::F32, DType::F16, DType::I64}[below(random_, 4)];
  const auto reduce = std::array{ReduceOp::Average, ReduceOp::Sum, ReduceOp::Max}[below(random_, 3)];
  std::vector<int64_t> dims(1 + below(random_, 2));
  for (int64_t& dim : dims) dim = static_cast<int64_t>(below(random_, 5));
  return make_request(op, std::move(name), dtype, Shape(dims), reduce, draw_rank(), chance(random_, 80) ? 1.0 : 2.0);
}

// The same request with another signature.
Request Author::mutated(const Request& request) {
  for (;;) {
    Request out = draw_request(request.name);
    if (out.signature != request.signature) return out;
  }
}

Use Author::draw_use(const Slot& slot) {
  Use use;
  for (Rank rank = 0; rank < out_.size; ++rank) {
    Call call = slot.call;
    for (Request& request : call) {
      if (row(request.signature.op).dims == DimsRule::AllButFirst) {
        request.first_dim = static_cast<int64_t>(below(random_, 6));
      }
    }
    use.calls.push_back({std::move(call)});
  }
  if (contradictions_ && chance(random_, 12)) contradict(use, slot);
  return use;
}

// Makes some rank, but not all, ask for something else than the others.
void Author::contradict(Use& use, const Slot& slot) {
  use.agreed = false;
  const auto first = static_cast<size_t>(draw_rank());
  auto& calls = use.calls[first];
  const bool regroups = slot.named && slot.call.size() > 1 && chance(random_, 60);
  const size_t way = below(random_, 3);
  if (regroups && way == 0) {
    std::swap(calls[0].front(), calls[0].back());
  } else if (regroups && way == 1 && slot.call.size() > 2) {
    calls[0].pop_back();
  } else if (regroups) {
    const Call together = std::exchange(calls, {})[0];
    for (const Request& request : together) calls.push_back({request});
  } else {
    Request& request = calls[0][below(random_, calls[0].size())];
    request = mutated(request);
  }
  if (out_.size > 2 && chance(random_, 30)) {
    const size_t second = (first + 1) % static_cast<size_t>(out_.size);
    Request& request = use.calls[second][0][0];
    request = mutated(request);
  }
}

void Author::write_step(size_t step) {
  const size_t first_use = out_.uses.size();
  std::vector<bool> named;
  for (Slot& slot : slots_) {
    if (!out_.steady && chance(random_, 15)) continue;
    if (!out_.steady && step > 0 && chance(random_, 5)) slot.call[0] = mutated(slot.call[0]);
    out_.uses.push_back(draw_use(slot));
    named.push_back(slot.named);
  }
  for (Rank rank = 0; rank < out_.size; ++rank) add_step_of(rank, first_use, named);
}

// A random order of a step's uses in which the unnamed ones keep theirs.
std::vector<size_t> Author::order_of(size_t uses, const std::vector<bool>& named) {
  std::vector<size_t> order(uses);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random_);
  std::vector<size_t> unnamed;
  for (const size_t use : order) {
    if (!named[use]) unnamed.push_back(use);
  }
  std::sort(unnamed.begin(), unnamed.end());
  auto next = unnamed.begin();
  for (size_t& use : order) {
    if (!named[use]) use = *next++;
  }
  return order;
}

void Author::add_step_of(Rank rank, size_t first_use, const std::vector<bool>& named) {
  auto& actions = script(rank);
  for (const size_t index : order_of(named.size(), named)) {
    const size_t use = first_use + index;
    const size_t calls = out_.uses[use].calls[static_cast<size_t>(rank)].size();
    for (size_t call = 0; call < calls; ++call) {
      actions.emplace_back(SubmitCall{use, call, chance(random_, more_percent_)});
      if (chance(random_, 5)) actions.emplace_back(FlushAll{});
    }
  }
  actions.emplace_back(FlushAll{});
  // A wait for what a rank forgot would hold up more than that.
  if (out_.fault == Fault::Forgets) return;
  if (out_.steady || chance(random_, 30)) actions.emplace_back(WaitForAll{});
}

// All meet before they leave, so that a failure that some have still to hear of is not hidden by a departure.
void Author::write_end() {
  const bool forgets = out_.fault == Fault::Forgets;
  if (!out_.steady && !forgets) {
    const Call barrier{make_request(OpKind::Barrier, "the end", DType::F32, {})};
    Use end;
    end.calls.assign(static_cast<size_t>(out_.size), {barrier});
    out_.uses.push_back(std::move(end));
  }
  for (Rank rank = 0; rank < out_.size; ++rank) {
    if (!out_.steady && !forgets) script(rank).emplace_back(SubmitCall{out_.uses.size() - 1, 0, false});
    script(rank).emplace_back(WaitForAll{});
    if (!forgets) script(rank).emplace_back(LeaveJob{});
  }
}

void Author::write_fault() {
  auto& actions = script(out_.culprit);
  if (out_.fault == Fault::Leaves || out_.fault == Fault::Dies) {
    actions.resize(below(random_, actions.size()));
    actions.push_back(out_.fault == Fault::Leaves ? Action(LeaveJob{}) : Action(Die{}));
  }
  if (out_.fault != Fault::Forgets) return;
  out_.coordinator.collective_timeout = std::chrono::minutes(1);
  // The last use that has a name: no later one can then be out of step with it.
  for (size_t i = actions.size(); i-- > 0;) {
    const auto* submit = std::get_if<SubmitCall>(&actions[i]);
    if (submit == nullptr) continue;
    const Call& call = out_.uses[submit->use].calls[static_cast<size_t>(out_.culprit)][0];
    if (call[0].name.empty()) continue;
    out_.forgotten = submit->use;
    actions.erase(actions.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
  out_.fault = Fault::None;
}

}  // namespace

Program make_program(uint64_t seed) {
  return Author(seed).write();
}

}  // namespace ronde::sim
