// SPDX-License-Identifier: Apache-2.0
// The measurements behind `ronde bench`, on one rank of a started job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace ronde::cli {

// "8:256M" (times 4 from step to step, the last one included) or "8,1K,4M". Bytes, each a multiple of 4.
Result<std::vector<int64_t>> parse_sizes(const std::string& text);

struct AllreduceBench {
  std::vector<int64_t> sizes;
  int repeats = 11;
};
struct LatencyBench {
  int repeats = 20000;
  bool busy = false;
};
// Exit status: 1 if a result was wrong or the job broke.
int run_bench(const AllreduceBench& bench);
int run_bench(const LatencyBench& bench);

}  // namespace ronde::cli
