// SPDX-License-Identifier: Apache-2.0
// The launcher: what `ronde run` does from the checked options to the exit status. It owns the store and the output,
// starts the agent, asks the policy what to do about each event, and does it.
#pragma once

#include "launch/options.h"
#include "launch/plan.h"

namespace ronde::launch {

// Gives the exit status; errors have been said on stderr. `env` is the launcher's own environment.
int run_job(const RunOptions& options, const Environment& env);

// On stderr, with "ronde: " before each line.
void complain(std::string_view text);

}  // namespace ronde::launch
