// SPDX-License-Identifier: Apache-2.0
// Board: what the ranks of one host share for control, in one piece of shared memory. Zeroed memory is a valid empty
// board.
//
//   abort    a word: 0, or 1 + the seat of whoever first knew that the epoch is over
//   per seat cause      code and text, written once by the seat's owner before it tries to be first
//   per rank sleeping   0 awake, 1 asleep on the loop's bell, 2 asleep on the waiter's bell
//            in_wait    1 while a thread of the user waits in the engine
//            beat       time of the last heartbeat, ns of CLOCK_MONOTONIC
//            up, down   bounded byte rings of frames to and from the coordinator (kRingBytes each, control/ring.h)
//
// There is a seat for each local rank, and one more, number local_size, for the host's agent, which has a cause only. A
// process that dies while it writes its cause keeps nobody else from being first.
//
// Contents are validated by the reader: a peer that writes nonsense is an error, not a crash.
// Waking: the producer stores (seq_cst), then reads `sleeping`; the consumer sets `sleeping` (seq_cst), then looks at
// every source again, then sleeps. So no wake-up is lost.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "control/carrier.h"
#include "control/ring.h"
#include "os/doorbell.h"

namespace ronde::control {

constexpr size_t kMaxCauseBytes = 4096 - 64;

struct BoardMemory;

enum class Sleeping : uint32_t { Awake = 0, OnLoopBell = 1, OnWaiterBell = 2 };

// The two bells of each local rank, [rank][0] the loop's and [rank][1] the waiter's.
using Bells = std::vector<std::array<os::Doorbell, 2>>;

// A rank's view of the board of its host. Lifetime: memory and bells outlive it.
class Board {
 public:
  static size_t bytes(int local_size);
  // local_rank == local_size: the agent's seat, which can only abort, wake and look.
  Board(std::byte* base, int local_size, int local_rank, const Bells* bells);

  int local_size() const;
  int local_rank() const;

  void set_sleeping(Sleeping state);  // own word, seq_cst
  void set_in_wait(bool waits);       // own word
  bool all_in_wait(std::span<const int> local_ranks) const;
  // Rings the bells of those that sleep; each sleeper is rung once: whoever rings sets its word to awake.
  void wake(std::span<const int> local_ranks);
  void wake_all();

  void beat(Time now);
  Time last_beat(int local_rank) const;

  // The first cause wins, of all seats and of each; wakes everybody. Texts are cut at kMaxCauseBytes.
  void abort(const Status& cause);
  bool aborted() const;  // one relaxed load
  Status abort_cause() const;

  // The rings between `local_rank` and the coordinator, which is local rank `coordinator` of this host. At each end
  // there is one carrier at a time. Once the board is aborted, carriers end with the cause; frames that came before are
  // read first. Lifetime: independent of the Board's.
  std::unique_ptr<Carrier> rank_side(int coordinator);
  std::unique_ptr<Carrier> coordinator_side(int local_rank);

 private:
  BoardMemory* memory_;
  int local_size_;
  int local_rank_;
  const Bells* bells_;
};

}  // namespace ronde::control
