// SPDX-License-Identifier: Apache-2.0
// The checker: proves what an algorithm promises, by executing the schedules of all members symbolically. Each chunk of
// each member holds the multiset of contributions that were added into it.
//
// It refuses a set of schedules unless
//   - nobody waits for ever, with FIFO order per ordered pair and rendezvous (a send ends only with its matching
//   receive);
//   - every send meets a receive of the same chunk in the same round, and nothing is left over;
//   - every member ends with what the Promise says, each contribution exactly once;
//   - with a sum, each chunk is finished at exactly one member, when it is complete, before anybody else gets
//   it complete;
//   - no round sends the chunk that it receives, and no chunk without content is sent or reduced.
#pragma once

#include <span>

#include "base/status.h"
#include "collective/plan/schedule.h"

namespace ronde::collective {

// schedules[i] is member i's. The error says which member, round and chunk, and what is wrong.
Status check(Promise promise, std::span<const Schedule> schedules, int root);

// The schedules of all members of a group.
std::vector<Schedule> plan_all(const Algorithm& algorithm, int size, int root);

}  // namespace ronde::collective
