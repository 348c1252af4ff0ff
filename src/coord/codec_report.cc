// SPDX-License-Identifier: Apache-2.0
#include "coord/codec.h"
#include "coord/codec_wire.h"

namespace ronde::coord {
namespace {

enum Kind : uint8_t { kSubmit = 1, kGroup = 2, kFlush = 3, kLeave = 4 };
constexpr uint8_t kKindBits = 0x07;
// Flags of a submit.
constexpr uint8_t kMore = 0x08;
constexpr uint8_t kWholeName = 0x10;
constexpr uint8_t kUnnamed = 0x20;
constexpr uint8_t kWholeSignature = 0x40;
constexpr uint8_t kFirstDim = 0x80;

uint8_t flags_of(const Submit& item) {
  unsigned out = kSubmit;
  if (item.more) out |= kMore;
  if (std::holds_alternative<std::string>(item.name)) out |= kWholeName;
  if (std::holds_alternative<Number>(item.name)) out |= kUnnamed;
  if (std::holds_alternative<Signature>(item.signature)) out |= kWholeSignature;
  if (item.first_dim >= 0) out |= kFirstDim;
  return static_cast<uint8_t>(out);
}

void put(Writer& out, const Submit& item) {
  out.put<uint8_t>(flags_of(item));
  put_var(out, item.set);
  if (const auto* name = std::get_if<std::string>(&item.name)) out.put_string(*name);
  if (const auto* id = std::get_if<NameId>(&item.name)) put_var(out, id->value);
  if (const auto* number = std::get_if<Number>(&item.name)) put_var(out, number->value);
  if (const auto* whole = std::get_if<Signature>(&item.signature)) put_signature(out, *whole);
  if (const auto* id = std::get_if<SignatureId>(&item.signature)) put_var(out, id->value);
  if (item.first_dim >= 0) put_var(out, static_cast<uint64_t>(item.first_dim));
}
void put(Writer& out, const Group& item) {
  out.put<uint8_t>(kGroup);
  put_var(out, item.count);
}
void put(Writer& out, const Flush& item) {
  out.put<uint8_t>(kFlush);
  put_var(out, item.set);
}
void put(Writer& out, const Leave&) {
  out.put<uint8_t>(kLeave);
}

void get_name(WireReader& in, uint8_t tag, Submit& out) {
  if ((tag & kWholeName) != 0 && (tag & kUnnamed) != 0) in.fail();
  if ((tag & kWholeName) != 0) {
    std::string name = in.get_string(kMaxNameBytes);
    if (name.empty()) in.fail();
    out.name = std::move(name);
  } else if ((tag & kUnnamed) != 0) {
    out.name = Number{in.get_var(kMaxNumber)};
  } else {
    out.name = NameId{in.get_var32()};
  }
}

Submit get_submit(WireReader& in, uint8_t tag) {
  Submit out;
  out.more = (tag & kMore) != 0;
  out.set = in.get_var32();
  get_name(in, tag, out);
  if ((tag & kWholeSignature) != 0) {
    out.signature = in.get_signature();
  } else {
    out.signature = SignatureId{in.get_var32()};
  }
  if ((tag & kFirstDim) != 0) out.first_dim = in.get_dim();
  return out;
}

ReportItem get_item(WireReader& in) {
  const uint8_t tag = in.get_u8();
  const uint8_t kind = tag & kKindBits;
  if (kind == kSubmit) return get_submit(in, tag);
  if (tag != kind) in.fail();
  switch (kind) {
    case kGroup: {
      const Group out{static_cast<uint32_t>(in.get_var(kMaxGroup))};
      if (out.count < 2) in.fail();
      return out;
    }
    case kFlush:
      return Flush{in.get_var32()};
    case kLeave:
      return Leave{};
    default:
      in.fail();
      return Leave{};
  }
}

}  // namespace

void encode(Writer& out, const ReportItem& item) {
  std::visit([&](const auto& it) { put(out, it); }, item);
}

Result<std::vector<ReportItem>> decode_report(ByteSpan frame) {
  WireReader in(frame);
  std::vector<ReportItem> out;
  while (in.left() > 0) out.push_back(get_item(in));
  RONDE_TRY(in.finish("report"));
  return out;
}

}  // namespace ronde::coord
