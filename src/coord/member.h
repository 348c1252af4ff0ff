// SPDX-License-Identifier: Apache-2.0
// Member: a rank's side of the coordination. Takes the rank's submissions, makes reports of them; takes decisions, and
// says which batches are to be run with which submissions, and which submissions failed. Pure: no threads, no clock, no
// sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "op/request.h"

namespace ronde::coord {

// The engine's name for one submitted tensor; never 0.
using Ticket = uint64_t;

// A batch that concerns this rank, in the total order. tickets[i] belongs to batch.tensors[i]; 0 if this rank did not
// submit it.
struct BatchReady {
  Batch batch;
  std::vector<Ticket> tickets;
};
// The message names the operation: "allreduce 'x': rank 1 has shut down, ...".
struct TicketFailed {
  Ticket ticket;
  Status status;
};
// A rank has left (its shutdown stands at this point of the order). For the rank itself: it may go now.
struct RankLeft {
  Rank rank;
};
// All ranks have agreed to add a set, which exists from this point of the order on. Ids grow from 1 and are never used
// again.
struct SetAdded {
  SetId id;
  std::vector<Rank> members;
  Ticket ticket;
};
// Operations of the set that were in flight have failed, or will in what follows.
struct SetRemoved {
  SetId id;
  Ticket ticket;
};
using Event = std::variant<BatchReady, TicketFailed, RankLeft, SetAdded, SetRemoved>;

struct MemberOptions {
  Rank rank = 0;
  Rank size = 1;
  size_t max_frame_bytes = 64 * 1024;  // of one report frame, at least kMinFrameBytes
  // Tell submissions marked `more` at once (still marked), so that the coordinator can cut them early.
  bool eager = false;
};

class Member {
 public:
  explicit Member(const MemberOptions& options);
  Member(Rank rank, Rank size, size_t max_frame_bytes = 64 * 1024);
  ~Member();

  // The tensors of one user call (a group is a span; it is cut together). An error is local (a name already in flight)
  // and leaves nothing submitted. `more`: further submits of this step follow; nothing needs to be told before flush().
  Status submit(std::span<const Request> requests, std::span<const Ticket> tickets, bool more);
  // Everything submitted so far may be cut.
  void flush();
  void leave();

  // What is to be told to the coordinator, as frames of at most max_frame_bytes each; empty if there is nothing to tell
  // now. Submissions marked `more` stay here until a flush, or until a submission without `more` comes; unless there
  // are very many of them, or the member is eager.
  std::vector<Bytes> take_reports();
  // True if take_reports() would return something.
  bool has_reports() const;

  // A decision frame, in the order sent. An error means that the bytes are no decision.
  Result<std::vector<Event>> on_decision(ByteSpan frame);
  // Everything in flight fails with `cause`: the tickets, for the engine to complete.
  std::vector<Ticket> fail_all();

  // Submissions without a decision.
  size_t in_flight() const;
  // True if `ticket` still waits for a decision and was submitted with `more` and not flushed since (its wait must
  // flush first).
  bool is_held(Ticket ticket) const;
  // Report entries so far that carried a name or a signature in whole. From the second step on this stands still.
  uint64_t whole_entries() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ronde::coord
