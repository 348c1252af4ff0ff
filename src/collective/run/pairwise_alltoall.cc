// SPDX-License-Identifier: Apache-2.0
#include "collective/run/pairwise_alltoall.h"

#include <algorithm>

namespace ronde::collective {
namespace {

constexpr size_t kWindow = 4;  // segments in flight in each direction

}  // namespace

PairwiseAlltoall::PairwiseAlltoall(RingContext& context, const BoundBatch& bound, size_t self)
    : context_(&context),
      bound_(&bound),
      self_(self),
      uses_(bound.batch.members.size()),
      rows_from_(bound.batch.members.size()),
      parts_out_(exchange_parts(bound.bindings[0].splits, row_bytes(bound.batch))) {
  rows_from_[self] = bound.bindings[0].splits[self];
  tell_counts();
}

PairwiseAlltoall::~PairwiseAlltoall() {
  if (!over_) close_links(Status(Code::Aborted, cat("batch ", bound_->batch.number, " was given up")));
}

PairwiseAlltoall::Use& PairwiseAlltoall::use_of(size_t member) {
  Use& use = uses_[member];
  if (use.link == nullptr) {
    use.link = &context_->links().link(bound_->batch.members[member], stream_of(bound_->batch));
    use.sends_before = use.link->sends_done();
    use.recvs_before = use.link->recvs_done();
  }
  return use;
}

void PairwiseAlltoall::tell_counts() {
  for (size_t round = 1; round < size(); ++round) {
    const size_t member = receives_from(round);
    Use& use = use_of(member);
    use.link->post_recv(tag(0), std::as_writable_bytes(std::span(&rows_from_[member], 1)));
    ++use.recvs_posted;
  }
  for (size_t round = 1; round < size(); ++round) {
    const size_t member = sends_to(round);
    Use& use = use_of(member);
    const ByteSpan count = std::as_bytes(std::span(&bound_->bindings[0].splits[member], 1));
    use.link->post_send(tag(0), {&count, 1});
    ++use.sends_posted;
  }
}

bool PairwiseAlltoall::counts_are_known() const {
  return std::ranges::all_of(uses_, [](const Use& use) {
    return use.link == nullptr ||
           (use.link->recvs_done() > use.recvs_before && use.link->sends_done() > use.sends_before);
  });
}

Result<Progress> PairwiseAlltoall::advance() {
  if (!failed_.ok()) return failed_;
  if (over_) return Progress::Done;
  for (const Use& use : uses_) {
    if (use.link == nullptr) continue;
    if (const Status status = use.link->advance(); !status.ok()) return fail(status);
  }
  if (parts_in_.empty()) {
    const Result<bool> begun = begin_data();
    if (!begun.ok()) return fail(begun.status());
    return *begun ? Progress::Working : Progress::Blocked;
  }
  bool moved = retire();
  while (post_receive()) moved = true;
  while (post_send()) moved = true;
  if (all_done()) {
    over_ = true;
    return Progress::Done;
  }
  return moved || own_.copy_piece() ? Progress::Working : Progress::Blocked;
}

Result<bool> PairwiseAlltoall::begin_data() {
  if (!counts_are_known()) return false;
  for (size_t member = 0; member < size(); ++member) {
    if (rows_from_[member] < 0)
      return Status(Code::Internal, cat("member ", member, " sends ", rows_from_[member], " rows"));
  }
  RONDE_ASSIGN(out_, bound_->allocate(0, rows_from_));
  parts_in_ = exchange_parts(rows_from_, row_bytes(bound_->batch));
  const ExchangePart& from = parts_out_[self_];
  const auto* const input = static_cast<const std::byte*>(bound_->bindings[0].in);
  own_ = OwnRows(input + from.begin, out_ + parts_in_[self_].begin, from.bytes);
  skip_done(send_at_, true);
  skip_done(receive_at_, false);
  return true;
}

void PairwiseAlltoall::skip_done(Place& place, bool sends) const {
  while (place.round < size()) {
    const size_t bytes = sends ? parts_out_[sends_to(place.round)].bytes : parts_in_[receives_from(place.round)].bytes;
    if (place.offset < bytes) return;
    place = {place.round + 1, 0};
  }
}

bool PairwiseAlltoall::post_receive() {
  if (receive_at_.round == size() || receives_.size() == kWindow) return false;
  const size_t member = receives_from(receive_at_.round);
  const ExchangePart& part = parts_in_[member];
  const size_t bytes = std::min(context_->options().segment_bytes, part.bytes - receive_at_.offset);
  Use& use = use_of(member);
  use.link->post_recv(tag(receive_at_.round), {out_ + part.begin + receive_at_.offset, bytes});
  receives_.push_back({member, ++use.recvs_posted});
  receive_at_.offset += bytes;
  skip_done(receive_at_, false);
  return true;
}

bool PairwiseAlltoall::post_send() {
  if (send_at_.round == size() || sends_.size() == kWindow) return false;
  const size_t member = sends_to(send_at_.round);
  const ExchangePart& part = parts_out_[member];
  const size_t bytes = std::min(context_->options().segment_bytes, part.bytes - send_at_.offset);
  const auto* const input = static_cast<const std::byte*>(bound_->bindings[0].in);
  const ByteSpan segment{input + part.begin + send_at_.offset, bytes};
  Use& use = use_of(member);
  use.link->post_send(tag(send_at_.round), {&segment, 1});
  sends_.push_back({member, ++use.sends_posted});
  send_at_.offset += bytes;
  skip_done(send_at_, true);
  return true;
}

bool PairwiseAlltoall::retire() {
  const size_t before = sends_.size() + receives_.size();
  while (!sends_.empty()) {
    const Use& use = uses_[sends_.front().member];
    if (use.link->sends_done() - use.sends_before < sends_.front().ordinal) break;
    sends_.pop_front();
  }
  while (!receives_.empty()) {
    const Use& use = uses_[receives_.front().member];
    if (use.link->recvs_done() - use.recvs_before < receives_.front().ordinal) break;
    receives_.pop_front();
  }
  return sends_.size() + receives_.size() != before;
}

bool PairwiseAlltoall::all_done() const {
  return send_at_.round == size() && receive_at_.round == size() && sends_.empty() && receives_.empty() && own_.done();
}

std::vector<Rank> PairwiseAlltoall::waits_for() const {
  std::vector<Rank> out;
  const std::vector<Rank>& members = bound_->batch.members;
  if (!parts_in_.empty()) {
    if (!receives_.empty()) out.push_back(members[receives_.front().member]);
    if (receives_.empty() && !sends_.empty()) out.push_back(members[sends_.front().member]);
    return out;
  }
  for (size_t member = 0; member < size(); ++member) {
    const Use& use = uses_[member];
    if (use.link != nullptr && use.link->recvs_done() == use.recvs_before) out.push_back(members[member]);
  }
  return out;
}

transport::FrameTag PairwiseAlltoall::tag(size_t round) const {
  return {.epoch = context_->options().epoch, .step = static_cast<uint32_t>(round), .batch = bound_->batch.number};
}

Status PairwiseAlltoall::fail(const Status& status) {
  failed_ = status;
  close_links(status);
  return status;
}

void PairwiseAlltoall::close_links(const Status& reason) {
  for (const Use& use : uses_) {
    if (use.link != nullptr) use.link->close(reason);
  }
  over_ = true;
}

}  // namespace ronde::collective
