// SPDX-License-Identifier: Apache-2.0
// RONDE_SIM_SEEDS=N runs N seeds instead of the quick test's; RONDE_SIM_FIRST_SEED=S begins at S.
#include "sim/negotiation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace ronde::sim {
namespace {

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(Negotiation, random_programs_keep_every_promise) {
  const uint64_t first = setting("RONDE_SIM_FIRST_SEED", 1);
  const uint64_t seeds = setting("RONDE_SIM_SEEDS", 200);
  NegotiationResult total;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const NegotiationResult result = run_negotiation(make_program(seed));
    ASSERT_EQ(result.violation, "");
    total.batches += result.batches;
    total.tensors += result.tensors;
    total.failures += result.failures;
  }
  std::cout << seeds << " programs: " << total.tensors << " tensors, " << total.batches << " batches, "
            << total.failures << " failures\n";
  EXPECT_GT(total.batches, 0u);
  EXPECT_TRUE(seeds < 200 || total.failures > 0);
}

TEST(Negotiation, a_run_can_be_repeated) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const NegotiationResult a = run_negotiation(make_program(seed));
    const NegotiationResult b = run_negotiation(make_program(seed));
    EXPECT_EQ(a.batches, b.batches);
    EXPECT_EQ(a.tensors, b.tensors);
    EXPECT_EQ(a.later_report_bytes, b.later_report_bytes);
  }
}

TEST(Negotiation, later_steps_take_few_bytes_for_a_tensor) {
  NegotiationResult total;
  uint64_t decision_bound = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Program program = make_program(seed);
    if (!program.steady) continue;
    const NegotiationResult result = run_negotiation(program);
    ASSERT_EQ(result.violation, "");
    total.later_tensors += result.later_tensors;
    total.later_report_bytes += result.later_report_bytes;
    total.later_decision_bytes += result.later_decision_bytes;
    // A decision has an entry for all ranks together, with a first dimension of each.
    decision_bound +=
        result.later_tensors / static_cast<uint64_t>(program.size) * (20 + static_cast<uint64_t>(program.size));
  }
  ASSERT_GT(total.later_tensors, 1000u);
  EXPECT_LT(total.later_report_bytes, 16 * total.later_tensors);
  EXPECT_LT(total.later_decision_bytes, decision_bound);
}

// One training step of `gradients`, each rank in an order of its own, all but the last with more to follow.
Program training(uint64_t seed, Rank size, const std::vector<int64_t>& gradients, size_t steps) {
  Random random(seed);
  Program out;
  out.seed = seed;
  out.size = size;
  out.steady = true;
  out.scripts.resize(static_cast<size_t>(size));
  out.think.assign(static_cast<size_t>(size), std::chrono::microseconds(400));
  out.transit = std::chrono::microseconds(200);
  out.coordinator.size = size;
  for (size_t step = 0; step < steps; ++step) {
    const size_t first = out.uses.size();
    std::vector<size_t> order;
    for (size_t i = 0; i < gradients.size(); ++i) {
      Use use;
      const Call call{
          make_request(OpKind::Allreduce, cat("gradient ", i), DType::F32, {gradients[i]}, ReduceOp::Average)};
      use.calls.assign(static_cast<size_t>(size), {call});
      out.uses.push_back(use);
      order.push_back(first + i);
    }
    for (auto& script : out.scripts) {
      std::shuffle(order.begin(), order.end(), random);
      for (const size_t use : order) script.emplace_back(SubmitCall{use, 0, true});
      script.emplace_back(FlushAll{});
      script.emplace_back(WaitForAll{});
    }
  }
  for (auto& script : out.scripts) script.emplace_back(LeaveJob{});
  return out;
}

// 161 tensors of 25.6 million elements, as ResNet-50 has them: a few large ones, many of some hundred.
std::vector<int64_t> resnet_gradients() {
  std::vector<int64_t> out(107, 512);
  for (int i = 0; i < 53; ++i) out.push_back(443'000);
  out.push_back(2'048'000);
  return out;
}

TEST(Negotiation, without_early_cuts_a_step_of_one_kind_is_one_batch) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const NegotiationResult result = run_negotiation(training(seed, 4, resnet_gradients(), 3));
    ASSERT_EQ(result.violation, "");
    EXPECT_EQ(result.batches, 3u);
  }
}

TEST(Negotiation, a_resnet_step_makes_at_most_20_batches_also_beside_a_slow_rank) {
  for (const int slowness : {1, 5, 30}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      Program program = training(seed, 4, resnet_gradients(), 2);
      program.coordinator.cut_early = true;
      program.eager = true;
      program.think[3] *= slowness;
      const NegotiationResult result = run_negotiation(program);
      ASSERT_EQ(result.violation, "");
      EXPECT_LE(result.batches, 2u * 20u) << "slowness " << slowness << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace ronde::sim
