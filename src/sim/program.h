// SPDX-License-Identifier: Apache-2.0
// Program: what the ranks of a simulated job do, drawn from a seed. Pure.
//
// A job runs some steps. In a step each rank submits the same operations in an order of its own (unnamed ones in the
// same order everywhere), names come again in later steps, and a rank goes on until a name it needs is still in flight.
// Some programs contain a fault: ranks that contradict each other, or a rank that leaves, dies, or forgets an
// operation.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "coord/coordinator.h"
#include "op/request.h"

namespace ronde::sim {

using Random = std::mt19937_64;
inline size_t below(Random& random, size_t bound) {
  return random() % bound;
}
inline bool chance(Random& random, size_t percent) {
  return random() % 100 < percent;
}

using Call = std::vector<Request>;

// One use of an operation, or of a group, by all ranks.
struct Use {
  std::vector<std::vector<Call>> calls;  // by rank; several where a rank does not group what others group
  bool agreed = true;                    // false: every submission of it must end in a Mismatch
};

struct SubmitCall {
  size_t use;
  size_t call;
  bool more;
};
struct FlushAll {};
struct WaitForAll {};
struct LeaveJob {};
struct Die {};
using Action = std::variant<SubmitCall, FlushAll, WaitForAll, LeaveJob, Die>;

enum class Fault { None, Leaves, Dies, Forgets };

struct Program {
  uint64_t seed = 0;
  Rank size = 1;
  std::vector<Use> uses;
  std::vector<std::vector<Action>> scripts;  // by rank
  std::vector<Duration> think;               // by rank: the longest pause between two actions
  Duration transit{};                        // the longest way of a frame
  coord::CoordinatorOptions coordinator;
  bool eager = false;
  bool steady = false;  // every step is the same but for first dimensions, and ranks wait at its end
  Fault fault = Fault::None;
  Rank culprit = 0;
  std::optional<size_t> forgotten;  // the use that the culprit does not submit
};

Program make_program(uint64_t seed);

}  // namespace ronde::sim
