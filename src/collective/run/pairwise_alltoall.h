// SPDX-License-Identifier: Apache-2.0
// PairwiseAlltoall: an alltoall over Links.
//
// First each member tells each other one how many rows are coming, in a frame of 8 bytes; then the output is allocated.
// In round r = 1 ... n-1 member i sends its rows for member i+r and receives those of member i-r, in segments. Rounds
// with nothing to send or to receive are left out, which both sides know. Bytes: each row that is not the member's own
// travels once, from where it lies in the input to where it belongs in the output; no memory but the two tables
// (Thakur, Rabenseifner, Gropp, 2005, section 4.4: the pairwise exchange).
//
// Receives are posted ahead of sends, and both in the order of the rounds, which is one order for all members: the
// earliest round that is not through anywhere can always move, so nobody waits for ever.
#pragma once

#include <deque>

#include "collective/run/exchange.h"
#include "collective/run/ring.h"

namespace ronde::collective {

class PairwiseAlltoall final : public Running {
 public:
  // `context` and `bound` outlive it. self: this rank's index in the batch.
  PairwiseAlltoall(RingContext& context, const BoundBatch& bound, size_t self);
  ~PairwiseAlltoall() override;

  Result<Progress> advance() override;
  std::vector<Rank> waits_for() const override;

 private:
  // A link, what it counted before, and what was posted since.
  struct Use {
    transport::Link* link = nullptr;
    uint64_t sends_before = 0;
    uint64_t recvs_before = 0;
    uint64_t sends_posted = 0;
    uint64_t recvs_posted = 0;
  };
  // The next segment to post: the round, and the bytes of it that were posted.
  struct Place {
    size_t round = 1;
    size_t offset = 0;
  };
  // A posted segment: the `ordinal`-th on its link.
  struct Posted {
    size_t member;
    uint64_t ordinal;
  };

  Use& use_of(size_t member);
  void tell_counts();
  bool counts_are_known() const;
  Result<bool> begin_data();
  bool post_receive();
  bool post_send();
  bool retire();
  bool all_done() const;
  size_t size() const { return uses_.size(); }
  size_t receives_from(size_t round) const { return (self_ + size() - round) % size(); }
  size_t sends_to(size_t round) const { return (self_ + round) % size(); }
  void skip_done(Place& place, bool sends) const;
  transport::FrameTag tag(size_t round) const;
  Status fail(const Status& status);
  void close_links(const Status& reason);

  RingContext* context_;
  const BoundBatch* bound_;
  size_t self_;
  std::vector<Use> uses_;  // by member; the own one is empty
  std::vector<int64_t> rows_from_;
  std::vector<ExchangePart> parts_out_;  // by member: what is sent to it
  std::vector<ExchangePart> parts_in_;   // by member: what comes from it; empty until all counts are known
  std::byte* out_ = nullptr;
  Place send_at_;
  Place receive_at_;
  std::deque<Posted> sends_;
  std::deque<Posted> receives_;
  OwnRows own_;
  Status failed_;
  bool over_ = false;  // the batch has let go of all memory
};

}  // namespace ronde::collective
