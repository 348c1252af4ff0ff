// SPDX-License-Identifier: Apache-2.0
// Coordinator: the state machine in rank 0 that turns reports into one total order of decisions for all ranks and all
// sets. Pure: bytes and times in, bytes out. No threads, no clock, no sockets.
//
// Reports and decisions are frames of coord/codec. Every rank gets the same stream of decisions, so that the id tables
// are equal everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "op/request.h"

namespace ronde::coord {

struct CoordinatorOptions {
  Rank size = 1;
  // Tensors marked `more` are cut once those that all ranks have submitted make this many bytes, or the first of them
  // has been ready for `hold` (doubling within a step: coord/ready_queue.h), whatever their member does. Members must
  // be `eager` then. Not used (cut_early = false) where all ranks share a host and memory: there communication is
  // computation.
  bool cut_early = false;
  int64_t batch_bytes = 8 << 20;
  Duration hold = std::chrono::milliseconds(5);
  // An operation for which some rank did not report for this long ends in a Timeout that names the missing ranks.
  Duration collective_timeout = std::chrono::minutes(30);
  // What else is known at that moment, to end the text of the Timeout: "; rank 1 has ..." or nothing.
  std::function<std::string(Time)> remark = [](Time) { return std::string(); };
  size_t max_frame_bytes = 64 * 1024;  // of one decision frame, at least kMinFrameBytes; a batch is cut so that it fits
};

class Coordinator {
 public:
  explicit Coordinator(const CoordinatorOptions& options);
  ~Coordinator();

  // A frame of `rank`, in the order sent. An error means that the bytes are not a report: the rank cannot be trusted
  // further.
  Status on_report(Rank rank, ByteSpan frame, Time now);
  // Cuts what is due at `now`, and raises deadlines. (What became due by a report is cut by take_decisions() too.)
  void tick(Time now);
  // When tick() has something to do next; kNever if nothing is pending.
  Time next_deadline() const;
  // Decision frames made since the last call, for every rank including this one. Each at most max_frame_bytes.
  std::vector<Bytes> take_decisions();

  struct Counters {
    uint64_t batches = 0;
    uint64_t definitions = 0;  // names and signatures
  };
  const Counters& counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ronde::coord
