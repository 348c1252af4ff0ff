// SPDX-License-Identifier: Apache-2.0
#include "collective/run/ring_run.h"

#include <algorithm>

namespace ronde::collective {

namespace {
// Segments in flight in each direction. Two would do for overlap; more hide that a peer is sometimes late.
constexpr size_t kWindow = 4;
constexpr size_t kScratchAlign = 64;
}  // namespace

RingRun::RingRun(RingContext& context, const BoundBatch& bound, size_t self, Schedule schedule)
    : context_(&context),
      batch_(bound.batch.number),
      members_(&bound.batch.members),
      schedule_(std::move(schedule)),
      needs_(needs_of(schedule_)),
      data_(bound, self, schedule_.chunks, context.options().segment_bytes),
      kept_(kept_chunks(schedule_)),
      scratch_(&context.scratch(stream_of(bound.batch))),
      scratch_stride_((data_.longest_segment() + kScratchAlign - 1) / kScratchAlign * kScratchAlign),
      stream_(stream_of(bound.batch)) {
  if (scratch_->size() < kWindow * scratch_stride_) scratch_->resize(kWindow * scratch_stride_);
  skip_send_pauses();
  skip_receive_pauses();
}

RingRun::~RingRun() {
  if (!over_) close_links(Status(Code::Aborted, cat("batch ", batch_, " was given up")));
}

Result<Progress> RingRun::advance() {
  if (!failed_.ok()) return failed_;
  if (over_) return Progress::Done;
  for (const Use& use : uses_)
    if (const Status status = use.link->advance(); !status.ok()) return fail(status);
  const bool moved = step();
  if (all_done()) {
    over_ = true;
    return Progress::Done;
  }
  return moved || keep_one() ? Progress::Working : Progress::Blocked;
}

std::vector<Rank> RingRun::waits_for() const {
  std::vector<Rank> out;
  if (!receives_.empty()) out.push_back(uses_[receives_.front().use].peer);
  if (receives_.empty() && !sends_.empty()) out.push_back(uses_[sends_.front().use].peer);
  return out;
}

// At most one segment of arithmetic, and whatever can be posted.
bool RingRun::step() {
  bool moved = retire_sends();
  moved |= take_one();
  while (post_receive()) moved = true;
  while (post_send()) moved = true;
  return moved;
}

bool RingRun::all_done() const {
  const size_t end = schedule_.rounds.size();
  return send_at_.round == end && receive_at_.round == end && sends_.empty() && receives_.empty() &&
         kept_at_ == kept_.size();
}

void RingRun::skip_send_pauses() {
  while (send_at_.round < schedule_.rounds.size() && round(send_at_).send_to == kNobody) ++send_at_.round;
}

void RingRun::skip_receive_pauses() {
  while (receive_at_.round < schedule_.rounds.size() && round(receive_at_).recv_from == kNobody) ++receive_at_.round;
}

bool RingRun::post_receive() {
  const Place place = receive_at_;
  if (place.round == schedule_.rounds.size() || receives_.size() == kWindow) return false;
  const RoundNeeds& needs = needs_[place.round];
  if (!is_through(needs.receive_after_receive, place.segment, taken())) return false;
  if (!is_through(needs.receive_after_send, place.segment, sent())) return false;

  const int chunk = round(place).recv_chunk;
  std::byte* scratch = scratch_for(receives_begun_++);
  std::span<std::byte> into(scratch, data_.bytes(chunk, place.segment));
  if (round(place).on_receive == OnReceive::Copy) {
    if (const auto output = data_.contiguous_output(chunk, place.segment)) {
      into = *output;
      scratch = nullptr;
    }
  }
  const size_t at = use_of(round(place).recv_from);
  Use& use = uses_[at];
  use.link->post_recv(tag(place), into);
  receives_.push_back({.use = at, .ordinal = ++use.recvs_posted, .place = place, .scratch = scratch});
  if (++receive_at_.segment == data_.segments(chunk)) {
    receive_at_ = {place.round + 1, 0};
    skip_receive_pauses();
  }
  return true;
}

bool RingRun::post_send() {
  const Place place = send_at_;
  if (place.round == schedule_.rounds.size() || sends_.size() == kWindow) return false;
  const int source = needs_[place.round].send_after_receive;
  if (!is_through(source, place.segment, taken())) return false;

  const int chunk = round(place).send_chunk;
  pieces_.clear();
  data_.to_send(chunk, place.segment, source != kNoRound, pieces_);
  const size_t at = use_of(round(place).send_to);
  Use& use = uses_[at];
  use.link->post_send(tag(place), pieces_);
  sends_.push_back({.use = at, .ordinal = ++use.sends_posted, .place = place});
  if (++send_at_.segment == data_.segments(chunk)) {
    send_at_ = {place.round + 1, 0};
    skip_send_pauses();
  }
  return true;
}

// Takes in the next segment that has arrived.
bool RingRun::take_one() {
  if (receives_.empty()) return false;
  const Posted first = receives_.front();
  const Use& use = uses_[first.use];
  if (use.link->recvs_done() - use.recvs_before < first.ordinal) return false;
  const Round& now = round(first.place);
  if (now.on_receive == OnReceive::Reduce) {
    const bool received = needs_[first.place.round].receive_after_receive != kNoRound;
    data_.reduce_in(now.recv_chunk, first.place.segment, first.scratch, received, now.finish_chunk == now.recv_chunk);
  } else if (first.scratch != nullptr) {
    data_.copy_in(now.recv_chunk, first.place.segment, first.scratch);
  }
  receives_.pop_front();
  return true;
}

bool RingRun::retire_sends() {
  const size_t before = sends_.size();
  while (!sends_.empty()) {
    const Use& use = uses_[sends_.front().use];
    if (use.link->sends_done() - use.sends_before < sends_.front().ordinal) break;
    sends_.pop_front();
  }
  return sends_.size() != before;
}

// One segment of the chunks that stay as they are, when there is nothing else to do.
bool RingRun::keep_one() {
  if (kept_at_ == kept_.size()) return false;
  const int chunk = kept_[kept_at_];
  data_.keep(chunk, kept_segment_);
  if (++kept_segment_ == data_.segments(chunk)) {
    kept_segment_ = 0;
    ++kept_at_;
  }
  return true;
}

size_t RingRun::use_of(int member) {
  const Rank peer = (*members_)[static_cast<size_t>(member)];
  for (size_t i = 0; i < uses_.size(); ++i)
    if (uses_[i].peer == peer) return i;
  transport::Link& link = context_->links().link(peer, stream_);
  uses_.push_back({.peer = peer, .link = &link, .sends_before = link.sends_done(), .recvs_before = link.recvs_done()});
  return uses_.size() - 1;
}

transport::FrameTag RingRun::tag(Place place) const {
  return {.epoch = context_->options().epoch, .step = static_cast<uint32_t>(place.round), .batch = batch_};
}

std::byte* RingRun::scratch_for(uint64_t nth_receive) {
  return scratch_->data() + (nth_receive % kWindow) * scratch_stride_;
}

Status RingRun::fail(const Status& status) {
  failed_ = status;
  close_links(status);
  return status;
}

void RingRun::close_links(const Status& reason) {
  for (const Use& use : uses_) use.link->close(reason);
  over_ = true;
}

}  // namespace ronde::collective
