// SPDX-License-Identifier: Apache-2.0
#include "member/hello.h"

#include <sodium.h>

#include "build_id.h"
#include "member/mac.h"

namespace ronde::member {
namespace {

constexpr uint64_t kMagic =
    0x0a0d65646e6f5281;  // "\x81Ronde\r\n" as little-endian: not text, and broken by whoever translates line ends
constexpr size_t kNonceBytes = 32;
constexpr size_t kIdentityBytes = 1 + 4 + 4 + 4 + 4;
constexpr size_t kHeadBytes = 8 + 8 + kNonceBytes + kIdentityBytes;
constexpr size_t kMacBytes = kKeyBytes;

enum Stage : int { kFirst, kSecond, kThird, kFourth, kDone, kFailed };  // which message is awaited

std::string hex(uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) out[i] = kDigits[value & 15];
  return out;
}

Bytes make_head(const Identity& self) {
  std::array<std::byte, kNonceBytes> nonce;
  randombytes_buf(nonce.data(), nonce.size());
  Writer writer;
  writer.put(kMagic).put(build_id()).put_bytes(nonce);
  writer.put(self.purpose).put(self.rank).put(self.called).put(self.epoch).put(self.stream);
  return writer.take();
}

struct Head {
  uint64_t build = 0;
  Identity identity;
};

Result<Head> parse_head(ByteSpan bytes) {
  Reader start(bytes.first(16));
  if (start.get<uint64_t>() != kMagic) {
    return Status(Code::Internal, "the peer is no process of ronde: it did not begin with ronde's hello");
  }
  Head head;
  head.build = start.get<uint64_t>();
  if (head.build != build_id()) return head;  // the rest may mean something else there
  Reader rest(bytes.subspan(16 + kNonceBytes));
  head.identity.purpose = rest.get_enum(kLastPurpose);
  head.identity.rank = rest.get<int32_t>();
  head.identity.called = rest.get<int32_t>();
  head.identity.epoch = rest.get<uint32_t>();
  head.identity.stream = rest.get<uint32_t>();
  RONDE_TRY(rest.finish("hello"));
  return head;
}

Status check_build(uint64_t peer) {
  if (peer == build_id()) return {};
  return Status(Code::InvalidArgument, cat("peer runs ronde build ", hex(peer), ", this is ", hex(build_id()),
                                           ": install the same version of ronde everywhere"));
}

Status check_called(int32_t called, int32_t answered) {
  if (called == -1 || called == answered) return {};
  return Status(Code::InvalidArgument, cat("rank ", answered, " answered a call for rank ", called));
}

Key prove(const Key& key, std::string_view label, ByteSpan transcript) {
  Key out;
  const ByteSpan pieces[] = {std::as_bytes(std::span(label.data(), label.size())), transcript};
  make_mac(key, pieces, out);
  return out;
}

Status check_proof(const Key& key, std::string_view label, ByteSpan transcript, ByteSpan proof) {
  if (same_secret(prove(key, label, transcript), proof)) return {};
  return Status(Code::InvalidArgument,
                "the peer does not hold this job's key: start all processes of a job with the same RONDE_KEY_FILE");
}

}  // namespace

uint64_t build_id() {
  return kBuildId;
}

Hello::Hello(Role role, const Key& key, const Identity& self)
    : role_(role), key_(key), self_(self), stage_(role == Role::Initiator ? kSecond : kFirst) {
  RONDE_CHECK(sodium_init() >= 0, "libsodium finds no source of random bytes");
}

Bytes Hello::start() {
  if (role_ == Role::Acceptor) return {};
  RONDE_CHECK(transcript_.empty(), "a hello starts once");
  transcript_ = make_head(self_);
  return transcript_;
}

size_t Hello::wants() const {
  switch (stage_) {
    case kFirst:
      return kHeadBytes;
    case kSecond:
      return kHeadBytes + kMacBytes;
    case kThird:
    case kFourth:
      return kMacBytes;
    default:
      return 0;
  }
}

Status Hello::feed(ByteSpan bytes, Bytes& out) {
  if (bytes.size() != wants() || bytes.empty()) {
    stage_ = kFailed;
    return Status(Code::Internal, "a hello of the wrong length");
  }
  const int stage = stage_;
  stage_ = kFailed;  // until the message has proved good
  if (stage == kFirst) RONDE_TRY(take_first(bytes, out));
  if (stage == kSecond) RONDE_TRY(take_second(bytes, out));
  if (stage == kThird) RONDE_TRY(take_third(bytes, out));
  if (stage == kFourth) RONDE_TRY(check_proof(key_, "welcome", transcript_, bytes));
  stage_ = stage == kFirst ? kThird : stage == kSecond ? kFourth : kDone;
  if (stage_ == kDone) session_ = prove(key_, "session", transcript_);
  return {};
}

Status Hello::take_first(ByteSpan bytes, Bytes& out) {
  RONDE_ASSIGN(const Head head, parse_head(bytes));
  peer_ = head.identity;
  self_ = {peer_.purpose, self_.rank, peer_.rank, peer_.epoch, peer_.stream};
  const Bytes own = make_head(self_);
  transcript_.assign(bytes.begin(), bytes.end());
  transcript_.insert(transcript_.end(), own.begin(), own.end());
  const Key proof = prove(key_, "acceptor", transcript_);
  out.insert(out.end(), own.begin(), own.end());
  out.insert(out.end(), proof.begin(), proof.end());
  RONDE_TRY(check_build(head.build));
  return check_called(peer_.called, self_.rank);
}

Status Hello::take_second(ByteSpan bytes, Bytes& out) {
  const ByteSpan theirs = bytes.first(kHeadBytes);
  RONDE_ASSIGN(const Head head, parse_head(theirs));
  RONDE_TRY(check_build(head.build));
  transcript_.insert(transcript_.end(), theirs.begin(), theirs.end());
  RONDE_TRY(check_proof(key_, "acceptor", transcript_, bytes.subspan(kHeadBytes)));
  peer_ = head.identity;
  RONDE_TRY(check_called(self_.called, peer_.rank));
  if (peer_ != Identity{self_.purpose, peer_.rank, self_.rank, self_.epoch, self_.stream}) {
    return Status(Code::Internal, "the peer answered the hello of another connection");
  }
  const Key proof = prove(key_, "initiator", transcript_);
  out.insert(out.end(), proof.begin(), proof.end());
  return {};
}

Status Hello::take_third(ByteSpan bytes, Bytes& out) {
  RONDE_TRY(check_proof(key_, "initiator", transcript_, bytes));
  const Key welcome = prove(key_, "welcome", transcript_);
  out.insert(out.end(), welcome.begin(), welcome.end());
  return {};
}

bool Hello::proven() const {
  return stage_ == kFourth || stage_ == kDone;
}

bool Hello::done() const {
  return stage_ == kDone;
}

const Identity& Hello::peer() const {
  return peer_;
}

const Key& Hello::session_key() const {
  RONDE_CHECK(done(), "a session key exists after the hello");
  return session_;
}

}  // namespace ronde::member
