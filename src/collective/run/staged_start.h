// SPDX-License-Identifier: Apache-2.0
// One maker per staged collective; start_staged chooses.
#pragma once

#include "collective/run/staged_party.h"

namespace ronde::collective {

std::unique_ptr<Running> start_staged_allreduce(const StagedParty& party, const BoundBatch& bound,
                                                const transport::ArenaLayout& layout);
std::unique_ptr<Running> start_staged_broadcast(const StagedParty& party, const BoundBatch& bound,
                                                const transport::ArenaLayout& layout);
std::unique_ptr<Running> start_staged_allgather(const StagedParty& party, const BoundBatch& bound,
                                                const transport::ArenaLayout& layout);
std::unique_ptr<Running> start_staged_reducescatter(const StagedParty& party, const BoundBatch& bound,
                                                    const transport::ArenaLayout& layout);
std::unique_ptr<Running> start_staged_alltoall(const StagedParty& party, const BoundBatch& bound,
                                               const transport::ArenaLayout& layout);
std::unique_ptr<Running> start_staged_barrier(const StagedParty& party);

}  // namespace ronde::collective
