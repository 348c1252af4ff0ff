// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "collective/plan/schedule.h"

namespace ronde::collective {
namespace {
constexpr std::array kAlgorithms{kRingAllreduce, kRingAllgather, kRingBroadcast, kRingBarrier, kPairwiseReducescatter};
}  // namespace

std::span<const Algorithm> algorithms() {
  return kAlgorithms;
}

}  // namespace ronde::collective
