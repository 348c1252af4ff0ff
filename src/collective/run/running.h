// SPDX-License-Identifier: Apache-2.0
// Running: a batch in execution, as a state machine that never blocks. Made by a backend, driven by the engine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "op/request.h"

namespace ronde::collective {

enum class Progress : uint8_t {
  Done,     // outputs are complete and the batch has let go of the caller's memory
  Working,  // did one piece of work (at most 256 KiB); more can be done at once
  Blocked,  // waits for a peer; nothing can be done now
};

class Running {
 public:
  virtual ~Running() = default;
  // At most one block of work, so that the caller can look at the control side between blocks.
  // An error is final: the batch has let go of the caller's memory, its outputs are undefined.
  virtual Result<Progress> advance() = 0;
  // While it is blocked: the ranks that it waits for, for messages. Such a rank may itself wait for another.
  virtual std::vector<Rank> waits_for() const = 0;
};

}  // namespace ronde::collective
