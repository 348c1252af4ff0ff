// SPDX-License-Identifier: Apache-2.0
#include "control/tcp_carrier.h"

#include <deque>

#include "control/sealer.h"
#include "member/mac.h"

namespace ronde::control {
namespace {

constexpr uint32_t kCreditMark = 0x80000000;
constexpr uint32_t kBeatMark = 0x40000000;
constexpr size_t kHeadBytes = sizeof(uint32_t) + kSealBytes;
constexpr size_t kReadBytes = 32 * 1024;
// Credits are given in steps: at most this much that was taken is not yet told. A sender that lacks credit for the
// largest frame has more than this outstanding, so its credit comes.
constexpr size_t kCreditStep = kCreditBytes / 4;
static_assert(kCreditStep + kHeadBytes + kMaxFrameBytes <= kCreditBytes);

class TcpCarrier final : public Carrier, private os::EventSet::Source {
 public:
  TcpCarrier(member::Greeted connection, bool initiator, std::string peer_name, os::EventSet* events)
      : fd_(std::move(connection.fd)),
        peer_name_(std::move(peer_name)),
        events_(events),
        seal_out_(connection.session, initiator),
        seal_in_(connection.session, !initiator) {}
  ~TcpCarrier() override { events_->remove(fd_.get()); }

  Status start() {
    RONDE_TRY(os::set_keepalive(fd_, kControlSilence));
    // The system's own choice grows only while somebody reads, and is smaller than the credit at first.
    RONDE_TRY(os::set_receive_buffer(fd_, 4 * kCreditBytes));
    return events_->add(fd_.get(), this);
  }

  Result<bool> try_send(ByteSpan frame) override;
  Result<std::optional<Bytes>> try_recv() override;
  void beat() override;
  bool take_sign_of_life() override { return std::exchange(sign_of_life_, false); }

 private:
  void on_ready(bool readable, bool writable) override {
    readable_ = readable_ || readable;
    writable_ = writable_ || writable;
  }
  void append(uint32_t length_word, ByteSpan payload);
  void flush();
  void absorb();
  Result<bool> read_more();
  Result<bool> take_in_frame();
  Status take_credit(ByteSpan payload);
  void give_credit();
  // The first error is the one that stays.
  void fail(const Status& status) {
    if (failed_.ok()) failed_ = status.with_context(peer_name_);
  }

  os::Fd fd_;
  std::string peer_name_;
  os::EventSet* events_;
  Sealer seal_out_;
  Sealer seal_in_;
  Status failed_;
  bool input_over_ = false;  // nothing can be read any more; failed_ says why
  bool readable_ = true;
  bool writable_ = true;
  bool sign_of_life_ = false;
  bool answered_ = true;  // the peer has said something since our last beat

  Bytes out_;                 // sealed, not yet written
  size_t written_ = 0;        // of out_
  Bytes in_;                  // read, less than a frame between calls
  size_t parsed_ = 0;         // of in_
  std::deque<Bytes> frames_;  // arrived, not yet taken by our owner; bounded by the peer's credit

  // Bytes of frames with their heads; credits themselves count for nothing.
  uint64_t sent_ = 0;
  uint64_t sent_and_taken_ = 0;  // as the peer told
  uint64_t arrived_ = 0;
  uint64_t taken_ = 0;     // of these, by our owner
  uint64_t credited_ = 0;  // of these, told to the peer
};

void TcpCarrier::append(uint32_t length_word, ByteSpan payload) {
  const Seal seal = seal_out_.next(length_word, payload);
  const auto word = std::as_bytes(std::span(&length_word, 1));
  out_.insert(out_.end(), word.begin(), word.end());
  out_.insert(out_.end(), seal.begin(), seal.end());
  out_.insert(out_.end(), payload.begin(), payload.end());
}

// A write that fails does not hide what the peer said before it went: try_recv reads on until the end.
void TcpCarrier::flush() {
  if (!writable_ || written_ == out_.size() || !failed_.ok()) return;
  const ByteSpan rest = ByteSpan(out_).subspan(written_);
  const auto wrote = os::write_some(fd_, {&rest, 1});
  if (!wrote.ok()) {
    fail(wrote.status());
    return;
  }
  written_ += *wrote;
  writable_ = *wrote == rest.size();
  if (written_ < out_.size()) return;
  out_.clear();
  written_ = 0;
}

Result<bool> TcpCarrier::try_send(ByteSpan frame) {
  RONDE_CHECK(frame.size() <= kMaxFrameBytes, "a control frame is at most kMaxFrameBytes");
  const size_t bytes = kHeadBytes + frame.size();
  const auto has_credit = [&] { return sent_ - sent_and_taken_ + bytes <= kCreditBytes; };
  if (!has_credit()) absorb();  // credits may have come
  flush();
  if (!failed_.ok()) return failed_;
  if (!has_credit()) return false;
  sent_ += bytes;
  append(static_cast<uint32_t>(frame.size()), frame);
  flush();
  if (!failed_.ok()) return failed_;
  return true;
}

Status TcpCarrier::take_credit(ByteSpan payload) {
  Reader reader(payload);
  const auto taken = reader.get<uint64_t>();
  RONDE_TRY(reader.finish("credit"));
  if (taken < sent_and_taken_ || taken > sent_) {
    return Status(Code::Internal, cat("sent a credit of ", taken, " bytes of ", sent_));
  }
  sent_and_taken_ = taken;
  return {};
}

void TcpCarrier::give_credit() {
  if (taken_ - credited_ < kCreditStep) return;
  credited_ = taken_;
  append(kCreditMark | sizeof taken_, std::as_bytes(std::span(&taken_, 1)));
}

// False: no whole frame is left in in_.
Result<bool> TcpCarrier::take_in_frame() {
  const ByteSpan rest = ByteSpan(in_).subspan(parsed_);
  if (rest.size() < kHeadBytes) return false;
  uint32_t word = 0;
  std::memcpy(&word, rest.data(), sizeof word);
  const size_t length = word == kBeatMark ? 0 : word & ~kCreditMark;
  if (length > kMaxFrameBytes) return Status(Code::Internal, cat("sent a control frame of ", length, " bytes"));
  if (rest.size() < kHeadBytes + length) return false;
  const ByteSpan payload = rest.subspan(kHeadBytes, length);
  if (!member::same_secret(seal_in_.next(word, payload), rest.subspan(sizeof word, kSealBytes))) {
    return Status(Code::Internal, "a control frame was changed, lost or repeated on its way (its MAC is wrong)");
  }
  parsed_ += kHeadBytes + length;
  if (word == kBeatMark) return true;
  if ((word & kCreditMark) != 0) {
    RONDE_TRY(take_credit(payload));
    return true;
  }
  arrived_ += kHeadBytes + length;
  if (arrived_ - credited_ > kCreditBytes) return Status(Code::Internal, "sent control frames beyond its credit");
  frames_.emplace_back(payload.begin(), payload.end());
  return true;
}

void TcpCarrier::beat() {
  if (!answered_ || !out_.empty() || !failed_.ok()) return;
  answered_ = false;
  append(kBeatMark, {});
  flush();
}

// False: nothing more now.
Result<bool> TcpCarrier::read_more() {
  if (!readable_) return false;
  in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(parsed_));
  parsed_ = 0;
  const size_t before = in_.size();
  in_.resize(before + kReadBytes);
  const auto got = os::read_some(fd_, std::span(in_).subspan(before));
  in_.resize(before + (got.ok() ? *got : 0));
  if (!got.ok()) return got.status();
  if (*got > 0) sign_of_life_ = answered_ = true;
  readable_ = *got > 0;  // an end of stream right behind these bytes is found by the next read only
  return readable_;
}

// Takes in all that has arrived. What it finds wrong ends the input.
void TcpCarrier::absorb() {
  while (!input_over_) {
    auto more = take_in_frame();
    if (more.ok() && !*more) more = read_more();
    if (!more.ok()) {
      input_over_ = true;
      fail(more.status());
    } else if (!*more) {
      return;
    }
  }
}

Result<std::optional<Bytes>> TcpCarrier::try_recv() {
  flush();
  if (frames_.empty()) absorb();
  if (frames_.empty()) {
    if (!failed_.ok()) return failed_;
    return std::optional<Bytes>();
  }
  Bytes frame = std::move(frames_.front());
  frames_.pop_front();
  taken_ += kHeadBytes + frame.size();
  give_credit();
  flush();
  return std::optional(std::move(frame));
}

}  // namespace

Result<std::unique_ptr<Carrier>> make_tcp_carrier(member::Greeted connection, bool initiator, std::string peer_name,
                                                  os::EventSet* events) {
  auto carrier = std::make_unique<TcpCarrier>(std::move(connection), initiator, std::move(peer_name), events);
  RONDE_TRY(carrier->start());
  return std::unique_ptr<Carrier>(std::move(carrier));
}

}  // namespace ronde::control
