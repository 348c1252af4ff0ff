// SPDX-License-Identifier: Apache-2.0
// The start plan: which rank runs where, with which arguments and which environment. A pure value over hosts, computed
// before anything starts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "launch/options.h"

namespace ronde::launch {

struct HostSlots {
  std::string name;
  int slots = 1;  // ranks to place here
  int cores = 1;
};

using Environment = std::vector<std::string>;  // "K=V", byte for byte
using Additions = std::vector<std::pair<std::string, std::string>>;

struct RankPlan {
  int rank = 0;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;  // among the hosts that have a rank with this local rank
  int cross_size = 1;
  Additions env;  // its own; what is common stands in the host's environment
};

struct HostPlan {
  std::string name;
  Environment env;
  std::vector<RankPlan> ranks;
};

// What is known of the job when it starts.
struct JobFacts {
  std::string job;    // random
  std::string store;  // host:port
  std::string run_dir;
  std::string master_addr;
  int master_port = 0;
};

struct StartPlan {
  std::vector<HostPlan> hosts;
  std::vector<std::string> hosts_by_rank;
  std::vector<std::string> notices;  // said once, on stderr
};

// Ranks fill the hosts in order.
Result<StartPlan> make_plan(const RunOptions& options, const std::vector<HostSlots>& hosts, const Environment& base,
                            const JobFacts& facts);

// The value of `name`; nullptr if it is not set.
const char* find_variable(const Environment& env, std::string_view name);
void set_variable(Environment& env, std::string_view name, std::string_view value);
void unset_variable(Environment& env, std::string_view name);
// The environment of a rank.
Environment with_additions(Environment env, const Additions& additions);
// Name and value of each; entries without "=" are left out.
Additions name_values(const Environment& env);
// RONDE_JOB=..., by which everything that belongs to the job is found.
std::string job_marker(std::string_view job);

}  // namespace ronde::launch
