// SPDX-License-Identifier: Apache-2.0
// What each round of a schedule has to wait for, so that rounds can overlap segment by segment: pure.
#pragma once

#include <vector>

#include "collective/plan/schedule.h"

namespace ronde::collective {

constexpr int kNoRound = -1;

// Rounds, all earlier than the one that needs them; segment s of this round waits for segment s of theirs.
struct RoundNeeds {
  // Received the chunk that this round sends. kNoRound: it is sent as this member had it at the start.
  int send_after_receive = kNoRound;
  // Received the chunk that this round receives. kNoRound: this member has its own content of it until now.
  int receive_after_receive = kNoRound;
  // Sent the chunk that this round receives, and may still be reading it.
  int receive_after_send = kNoRound;
};

std::vector<RoundNeeds> needs_of(const Schedule& schedule);
// The chunks that no round receives: what the member has of them stays.
std::vector<int> kept_chunks(const Schedule& schedule);

}  // namespace ronde::collective
