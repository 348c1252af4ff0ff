// SPDX-License-Identifier: Apache-2.0
// Identity: who this process is in its job, as its launcher, or the user by hand, says in the environment. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace ronde::engine {

struct JobIdentity {
  int32_t rank = 0;
  int32_t size = 1;
  int32_t local_rank = 0;
  int32_t local_size = 1;
  std::string store;  // host:port; empty: a job of one that nobody started
  std::string key_file;
  std::string broker;     // of the launcher's agent; empty: started by hand
  bool launched = false;  // by `ronde run`
};

// `get` gives the value of an environment variable. Without RONDE_RANK and RONDE_SIZE: rank 0 of 1.
// Errors name the variable, its value, and what is expected.
Result<JobIdentity> parse_identity(const std::function<std::optional<std::string>(const char*)>& get);

}  // namespace ronde::engine
