// SPDX-License-Identifier: Apache-2.0
#include "coord/codec.h"
#include "coord/codec_wire.h"

namespace ronde::coord {
namespace {

enum Kind : uint8_t { kDefineName = 1, kDefineSignature = 2, kBatch = 3, kFailed = 4, kLeft = 5 };
constexpr uint8_t kFirstDims = 0x08;  // flag of a batch

uint64_t wire_key(const Key& key) {
  return key.value * 2 + (key.unnamed ? 1 : 0);
}

void put(Writer& out, const DefineName& item) {
  out.put<uint8_t>(kDefineName);
  put_var(out, item.id);
  put_var(out, item.set);
  out.put_string(item.name);
}
void put(Writer& out, const DefineSignature& item) {
  out.put<uint8_t>(kDefineSignature);
  put_var(out, item.id);
  put_signature(out, item.signature);
}
void put(Writer& out, const BatchDecision& item) {
  const size_t members = item.entries.empty() ? 0 : item.entries.front().first_dims.size();
  out.put<uint8_t>(static_cast<uint8_t>(kBatch | (members > 0 ? kFirstDims : 0)));
  put_var(out, item.number);
  put_var(out, item.set);
  put_var(out, item.entries.size());
  if (members > 0) put_var(out, members);
  for (const BatchEntry& entry : item.entries) {
    put_var(out, wire_key(entry.key));
    put_var(out, entry.signature);
    for (const int64_t dim : entry.first_dims) put_var(out, static_cast<uint64_t>(dim));
  }
}
void put(Writer& out, const Failed& item) {
  out.put<uint8_t>(kFailed);
  put_var(out, item.set);
  out.put(item.code).put_string(item.text);
  put_var(out, item.keys.size());
  for (const Key& key : item.keys) put_var(out, wire_key(key));
  put_var(out, item.ranks.size());
  for (const Rank rank : item.ranks) put_var(out, static_cast<uint64_t>(rank));
}
void put(Writer& out, const Left& item) {
  out.put<uint8_t>(kLeft);
  put_var(out, static_cast<uint64_t>(item.rank));
}

Key get_key(WireReader& in) {
  const uint64_t wire = in.get_var(kMaxNumber * 2 + 1);
  const Key key{(wire & 1) != 0, wire / 2};
  if (!key.unnamed && key.value > UINT32_MAX) in.fail();
  return key;
}

DefineName get_define_name(WireReader& in) {
  DefineName out;
  out.id = in.get_var32();
  out.set = in.get_var32();
  out.name = in.get_string(kMaxNameBytes);
  if (out.name.empty()) in.fail();
  return out;
}

BatchDecision get_batch(WireReader& in, bool has_first_dims) {
  BatchDecision out;
  out.number = in.get_var(kMaxNumber);
  out.set = in.get_var32();
  const uint64_t entries = in.get_var(in.left());
  const uint64_t members = has_first_dims ? in.get_var(in.left()) : 0;
  if (entries == 0 || (has_first_dims && members == 0)) in.fail();
  while (in.good() && out.entries.size() < entries) {
    BatchEntry& entry = out.entries.emplace_back();
    entry.key = get_key(in);
    entry.signature = in.get_var32();
    while (in.good() && entry.first_dims.size() < members) entry.first_dims.push_back(in.get_dim());
  }
  return out;
}

Failed get_failed(WireReader& in) {
  Failed out;
  out.set = in.get_var32();
  out.code = in.get_code();
  out.text = in.get_string(kMaxTextBytes);
  const uint64_t keys = in.get_var(kMaxFailedKeys);
  while (in.good() && out.keys.size() < keys) out.keys.push_back(get_key(in));
  const uint64_t ranks = in.get_var(kMaxFailedRanks);
  while (in.good() && out.ranks.size() < ranks) out.ranks.push_back(in.get_rank());
  return out;
}

DecisionItem get_item(WireReader& in) {
  const uint8_t tag = in.get_u8();
  switch (tag) {
    case kDefineName:
      return get_define_name(in);
    case kDefineSignature: {
      DefineSignature out;
      out.id = in.get_var32();
      out.signature = in.get_signature();
      return out;
    }
    case kBatch:
    case kBatch | kFirstDims:
      return get_batch(in, (tag & kFirstDims) != 0);
    case kFailed:
      return get_failed(in);
    case kLeft:
      return Left{in.get_rank()};
    default:
      in.fail();
      return Left{};
  }
}

}  // namespace

void encode(Writer& out, const DecisionItem& item) {
  std::visit([&](const auto& it) { put(out, it); }, item);
}

size_t encoded_bytes(const BatchEntry& entry) {
  size_t out = var_bytes(wire_key(entry.key)) + var_bytes(entry.signature);
  for (const int64_t dim : entry.first_dims) out += var_bytes(static_cast<uint64_t>(dim));
  return out;
}

Result<std::vector<DecisionItem>> decode_decision(ByteSpan frame) {
  WireReader in(frame);
  std::vector<DecisionItem> out;
  while (in.left() > 0) out.push_back(get_item(in));
  RONDE_TRY(in.finish("decision"));
  return out;
}

}  // namespace ronde::coord
