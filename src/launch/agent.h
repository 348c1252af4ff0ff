// SPDX-License-Identifier: Apache-2.0
// The agent of a host: starts the host's ranks, tells the launcher what becomes of them and what they write, signals
// them, and leaves nothing behind. It outlives the launcher: the end of their channel means "end everything".
//
// Processes: the agent has a session of its own and adopts orphans, so whatever a rank starts stays its descendant.
// Each rank has a session of its own too and dies with the agent. Output: at most kOutputWindow bytes travel before the
// launcher has written them, so that a full console holds up the writers and not the news.
#pragma once

#include <cstddef>

#include "os/fd.h"

namespace ronde::launch {

constexpr size_t kOutputWindow = 1024 * 1024;

// The main function of `ronde agent`: orders come over `channel`, a stream socket. Gives the exit status of the
// process.
int run_agent(os::Fd channel);

}  // namespace ronde::launch
