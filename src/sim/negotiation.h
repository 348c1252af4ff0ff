// SPDX-License-Identifier: Apache-2.0
// A simulated job: a Coordinator and a Member per rank, joined by queues of random delay under a clock that the
// simulation moves. Nothing else is simulated: a batch is run at once. The same program always gives the same run.
#pragma once

#include <cstdint>
#include <string>

#include "sim/program.h"

namespace ronde::sim {

struct NegotiationResult {
  std::string violation;  // empty: every promise was kept (sim/referee.h)
  uint64_t batches = 0;
  uint64_t tensors = 0;  // submitted, over all ranks
  uint64_t failures = 0;
  // After the first step of a steady program.
  uint64_t later_tensors = 0;
  uint64_t later_report_bytes = 0;
  uint64_t later_decision_bytes = 0;  // each once, not per rank
};

NegotiationResult run_negotiation(const Program& program);

}  // namespace ronde::sim
