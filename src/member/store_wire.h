// SPDX-License-Identifier: Apache-2.0
// What rank and store say to each other, after the hello. A frame is [u32 length][u8 kind][...]; strings and blobs are
// u32 length and bytes; times are i64 ns and relative, because the clocks of two hosts differ.
//
//   rank -> store
//     0 open      u32 request, i64 patience, i32 size, string who, blob     arrives for the next epoch
//     1 exchange  u32 request, i64 patience, u32 epoch, string tag, blob    allgather within the epoch
//     2 failure   u32 epoch, u8 code, string text                           the rank's own failure
//     3 leave     u32 epoch, u32 order                                      the end of the connection will be no loss
//     4 abort     u32 epoch, u8 code, string text                           the rank has given up; becomes news for all
//   store -> rank
//     5 part      i32 rank, blob                                            one per rank, before the done
//     6 done      u32 request, u32 epoch
//     7 failed    u32 request, u8 code, string text
//     8 news      u32 epoch, i32 rank, u8 code, string text                 a Cause
//
// A rank has at most one request open; a new one withdraws the one before. Requests are numbered by the rank, so that a
// late answer is known for what it is.
#pragma once

#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/clock.h"
#include "member/frame_stream.h"
#include "member/store.h"

namespace ronde::member::store_wire {

constexpr size_t kMaxWhoBytes = 200;
constexpr size_t kMaxTagBytes = 200;
constexpr size_t kMaxFrameBytes = kMaxBlobBytes + kFrameOverhead;

struct Open {
  uint32_t request = 0;
  Duration patience{};
  int32_t size = 0;
  std::string who;
  Bytes blob;
};
struct Exchange {
  uint32_t request = 0;
  Duration patience{};
  uint32_t epoch = 0;
  std::string tag;
  Bytes blob;
};
struct Failure {
  uint32_t epoch = 0;
  Status what;
};
struct Leave {
  uint32_t epoch = 0;
  uint32_t order = 0;
};
struct Abort {
  uint32_t epoch = 0;
  Status status;
};
struct Part {
  int32_t rank = 0;
  Bytes blob;
};
struct Done {
  uint32_t request = 0;
  uint32_t epoch = 0;
};
struct Failed {
  uint32_t request = 0;
  Status status;
};
struct News {
  uint32_t epoch = 0;
  Cause cause;
};
using Message = std::variant<Open, Exchange, Failure, Leave, Abort, Part, Done, Failed, News>;
constexpr size_t kMessagesOfRanks = 5;  // the others are the store's

// Texts are cut to what a frame holds.
WireFrame encode(const Message& message);
// Of a frame without its length.
Result<Message> decode(ByteSpan frame);

}  // namespace ronde::member::store_wire
