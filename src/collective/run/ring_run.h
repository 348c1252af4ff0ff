// SPDX-License-Identifier: Apache-2.0
// RingRun: executes a Schedule over Links.
//
// Receiving, reducing and sending overlap: a segment is sent as soon as the same segment of the round that it depends
// on was taken in (ring_needs.h). Receives are posted some segments ahead and before any send, so that no two members
// can wait for one another's buffers. What is to be reduced, and what lies scattered in the outputs, arrives in
// scratch; the rest in place.
#pragma once

#include <compare>
#include <deque>

#include "collective/run/ring.h"
#include "collective/run/ring_data.h"
#include "collective/run/ring_needs.h"

namespace ronde::collective {

class RingRun final : public Running {
 public:
  // `context` and `bound` outlive it. self: this rank's index in the batch.
  RingRun(RingContext& context, const BoundBatch& bound, size_t self, Schedule schedule);
  ~RingRun() override;

  Result<Progress> advance() override;
  std::vector<Rank> waits_for() const override;

 private:
  // A segment of a round; rounds are worked on in order, and segments within them.
  struct Place {
    size_t round = 0;
    int64_t segment = 0;
    auto operator<=>(const Place&) const = default;
  };
  // A link as this batch uses it: what it counted before, and what was posted since.
  struct Use {
    Rank peer;
    transport::Link* link;
    uint64_t sends_before;
    uint64_t recvs_before;
    uint64_t sends_posted = 0;
    uint64_t recvs_posted = 0;
  };
  struct Posted {
    size_t use;
    uint64_t ordinal;  // among those posted on the link
    Place place;
    std::byte* scratch = nullptr;  // receives: where it arrives, null if in the output
  };

  bool step();
  bool post_receive();
  bool post_send();
  bool take_one();
  bool retire_sends();
  bool keep_one();
  bool all_done() const;
  Status fail(const Status& status);
  void close_links(const Status& reason);

  const Round& round(Place place) const { return schedule_.rounds[place.round]; }
  size_t use_of(int member);
  // True if the segment of the same number of `needed` comes before `through`.
  static bool is_through(int needed, int64_t segment, Place through) {
    return needed == kNoRound || Place{static_cast<size_t>(needed), segment} < through;
  }
  void skip_send_pauses();
  void skip_receive_pauses();
  Place taken() const { return receives_.empty() ? receive_at_ : receives_.front().place; }
  Place sent() const { return sends_.empty() ? send_at_ : sends_.front().place; }
  transport::FrameTag tag(Place place) const;
  std::byte* scratch_for(uint64_t nth_receive);

  RingContext* context_;
  uint64_t batch_;
  const std::vector<Rank>* members_;
  Schedule schedule_;
  std::vector<RoundNeeds> needs_;
  RingData data_;
  std::vector<int> kept_;
  std::vector<std::byte>* scratch_;
  size_t scratch_stride_;
  int stream_;

  std::vector<Use> uses_;
  Place send_at_;     // the next to post
  Place receive_at_;  // the next to post
  std::deque<Posted> sends_;
  std::deque<Posted> receives_;
  uint64_t receives_begun_ = 0;
  size_t kept_at_ = 0;  // into kept_
  int64_t kept_segment_ = 0;
  std::vector<ByteSpan> pieces_;
  Status failed_;
  bool over_ = false;  // the batch has let go of all memory
};

}  // namespace ronde::collective
