// SPDX-License-Identifier: Apache-2.0
#include "collective/run/ring.h"

#include "collective/plan/schedule.h"
#include "collective/run/pairwise_alltoall.h"
#include "collective/run/ring_run.h"

namespace ronde::collective {
namespace {

const Algorithm& algorithm_of(OpKind op) {
  switch (op) {
    case OpKind::Allreduce:
      return kRingAllreduce;
    case OpKind::Broadcast:
      return kRingBroadcast;
    case OpKind::Allgather:
      return kRingAllgather;
    case OpKind::Barrier:
      return kRingBarrier;
    case OpKind::Reducescatter:
      return kPairwiseReducescatter;
    case OpKind::Alltoall:  // what is sent is known while it runs
    case OpKind::AddSet:
    case OpKind::RemoveSet:
      break;
  }
  RONDE_CHECK(false, "an op without a ring algorithm");
}

}  // namespace

std::unique_ptr<Running> start_ring(RingContext& context, const BoundBatch& bound) {
  const Batch& batch = bound.batch;
  RONDE_CHECK(batch.members.size() >= 2, "a ring has at least two members");
  const auto size = static_cast<int>(batch.members.size());
  const size_t self = index_of(batch, context.options().self);
  if (batch.op == OpKind::Alltoall) return std::make_unique<PairwiseAlltoall>(context, bound, self);
  const int root = row(batch.op).has_root ? static_cast<int>(index_of(batch, batch.root)) : 0;
  Schedule schedule = algorithm_of(batch.op).plan(static_cast<int>(self), size, root);
  return std::make_unique<RingRun>(context, bound, self, std::move(schedule));
}

}  // namespace ronde::collective
