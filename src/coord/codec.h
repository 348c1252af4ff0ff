// SPDX-License-Identifier: Apache-2.0
// The wire form of the coordination: reports (a rank to the coordinator) and decisions (the coordinator to all ranks).
//
// A frame is a row of items, each a tag byte and its fields. The low three bits of the tag are the kind, the others
// flags. "var" is an unsigned number in groups of seven bits, least first, without needless bytes (codec_wire.h).
//
// clang-format off
//   report    1 Submit           var set; name: string | var name id | var running number; signature: whole | var id;
//                                [var first dim]
//             2 Group            var count: the next `count` submits, maybe in later frames, are one call of the user
//             3 Flush            var set
//             4 Leave
//   decision  1 DefineName       var id, var set, string name
//             2 DefineSignature  var id, signature
//             3 Batch            var number, var set, var entries, [var members], entries: var key, var signature id,
//                                [var dim each]
//             4 Failed           var set, u8 code, string text, var keys, keys, var ranks, ranks
//             5 Left             var rank
//
//   signature  u8 op, u8 dtype, u8 dims; if the op reduces u8 reduce op, f64 prescale, f64 postscale; if it has a root
//              var root; if it changes sets var count and as many var steps of ascending numbers; var dims
//   var key    2 * name id, or 2 * running number + 1
// clang-format on
//
// Bytes: a known operation takes 4 to 16 in a report and 2 to 10 in a batch. Decoding never trusts a length or an id.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "op/request.h"

namespace ronde::coord {

constexpr size_t kMinFrameBytes = 8192;  // the least max_frame_bytes: every single item but a batch fits into it
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxTextBytes = 2048;  // of a failure
constexpr size_t kMaxFailedKeys = 256;  // in one item; more go into further items
constexpr size_t kMaxFailedRanks = 512;
constexpr uint64_t kMaxGroup = 1 << 20;
constexpr uint64_t kMaxNumber = uint64_t{1} << 62;  // of unnamed operations and of batches

// What ranks meet under, within a set: a name, or the running number of an unnamed operation.
struct Key {
  bool unnamed = false;
  uint64_t value = 0;  // name id or running number
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const { return std::hash<uint64_t>()(key.value * 2 + (key.unnamed ? 1 : 0)); }
};

struct NameId {
  uint32_t value = 0;
  bool operator==(const NameId&) const = default;
};
struct Number {
  uint64_t value = 0;
  bool operator==(const Number&) const = default;
};
struct SignatureId {
  uint32_t value = 0;
  bool operator==(const SignatureId&) const = default;
};

struct Submit {
  SetId set = kWorldSet;
  bool more = false;
  std::variant<std::string, NameId, Number> name;
  std::variant<Signature, SignatureId> signature;
  int64_t first_dim = -1;  // -1: the op does not let it differ
  bool operator==(const Submit&) const = default;
};
struct Group {
  uint32_t count = 0;
  bool operator==(const Group&) const = default;
};
struct Flush {
  SetId set = kWorldSet;
  bool operator==(const Flush&) const = default;
};
struct Leave {
  bool operator==(const Leave&) const = default;
};
using ReportItem = std::variant<Submit, Group, Flush, Leave>;

struct DefineName {
  uint32_t id = 0;
  SetId set = kWorldSet;
  std::string name;
  bool operator==(const DefineName&) const = default;
};
struct DefineSignature {
  uint32_t id = 0;
  Signature signature;
  bool operator==(const DefineSignature&) const = default;
};
struct BatchEntry {
  Key key;
  uint32_t signature = 0;
  std::vector<int64_t> first_dims;  // one per member, or none
  bool operator==(const BatchEntry&) const = default;
};
struct BatchDecision {
  uint64_t number = 0;
  SetId set = kWorldSet;
  std::vector<BatchEntry> entries;  // all with first dims, equally many, or all without
  bool operator==(const BatchDecision&) const = default;
};
// The submissions of these ranks under these keys have failed.
struct Failed {
  SetId set = kWorldSet;
  Code code = Code::Internal;
  std::string text;
  std::vector<Key> keys;
  std::vector<Rank> ranks;
  bool operator==(const Failed&) const = default;
};
struct Left {
  Rank rank = 0;
  bool operator==(const Left&) const = default;
};
using DecisionItem = std::variant<DefineName, DefineSignature, BatchDecision, Failed, Left>;

void encode(Writer& out, const ReportItem& item);
void encode(Writer& out, const DecisionItem& item);
// Bytes of one entry in a batch, and the most that the rest of a batch takes.
size_t encoded_bytes(const BatchEntry& entry);
constexpr size_t kBatchHeadBytes = 32;

// Every item of a frame, or an error; never a part.
Result<std::vector<ReportItem>> decode_report(ByteSpan frame);
Result<std::vector<DecisionItem>> decode_decision(ByteSpan frame);

}  // namespace ronde::coord
