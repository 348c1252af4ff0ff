// SPDX-License-Identifier: Apache-2.0
#include "collective/run/staged.h"

#include "collective/run/staged_start.h"

namespace ronde::collective {

std::unique_ptr<Running> start_staged(StagedContext& context, const BoundBatch& bound) {
  const StagedParty party(context, bound.batch);
  const transport::ArenaLayout& layout = context.arena().layout();
  switch (bound.batch.op) {
    case OpKind::Allreduce:
      return start_staged_allreduce(party, bound, layout);
    case OpKind::Broadcast:
      return start_staged_broadcast(party, bound, layout);
    case OpKind::Allgather:
      return start_staged_allgather(party, bound, layout);
    case OpKind::Barrier:
      return start_staged_barrier(party);
    case OpKind::Reducescatter:
      return start_staged_reducescatter(party, bound, layout);
    case OpKind::Alltoall:
      return start_staged_alltoall(party, bound, layout);
    case OpKind::AddSet:
    case OpKind::RemoveSet:
      break;
  }
  RONDE_CHECK(false, "an op without a staged collective");
}

}  // namespace ronde::collective
