// SPDX-License-Identifier: Apache-2.0
#include "coord/codec_wire.h"

#include <algorithm>
#include <array>

#include "coord/limits.h"

namespace ronde::coord {

void put_var(Writer& out, uint64_t value) {
  while (value >= 0x80) {
    out.put<uint8_t>(static_cast<uint8_t>(value | 0x80));
    value >>= 7;
  }
  out.put<uint8_t>(static_cast<uint8_t>(value));
}

size_t var_bytes(uint64_t value) {
  size_t out = 1;
  for (; value >= 0x80; value >>= 7) ++out;
  return out;
}

uint64_t WireReader::get_var(uint64_t max) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = in_.get<uint8_t>();
    const uint64_t bits = byte & 0x7f;
    const bool overflows = shift == 63 && bits > 1;
    const bool needless = shift > 0 && byte == 0;
    if (!in_.good() || overflows || needless) break;
    value |= bits << shift;
    if ((byte & 0x80) != 0) continue;
    if (value > max) break;
    return value;
  }
  fail();
  return 0;
}

Code WireReader::get_code() {
  const auto code = in_.get_enum(Code::Interrupted);
  if (code == Code::Ok) fail();
  return code;
}

// The count, the first, and of the others how far each is from its next possible place: mostly a byte each.
void put_ascending(Writer& out, const std::vector<int32_t>& values) {
  put_var(out, values.size());
  int32_t least = 0;
  for (const int32_t value : values) {
    put_var(out, static_cast<uint64_t>(value - least));
    least = value + 1;
  }
}

void put_signature(Writer& out, const Signature& signature) {
  const OpRow& op = row(signature.op);
  out.put(signature.op).put(signature.dtype).put<uint8_t>(static_cast<uint8_t>(signature.shape.ndim()));
  if (op.reduces) out.put(signature.reduce).put(signature.prescale).put(signature.postscale);
  if (op.has_root) put_var(out, static_cast<uint64_t>(signature.root));
  if (op.changes_sets) put_ascending(out, signature.subject);
  const auto dims = signature.shape.dims();
  for (size_t i = op.dims == DimsRule::AllButFirst ? 1 : 0; i < dims.size(); ++i) {
    put_var(out, static_cast<uint64_t>(dims[i]));
  }
}

std::vector<int32_t> WireReader::get_ascending() {
  std::vector<int32_t> out;
  const uint64_t count = get_var(std::min<uint64_t>(left(), kMaxSubject));
  for (int64_t least = 0; good() && out.size() < count; least = int64_t{out.back()} + 1) {
    out.push_back(
        static_cast<int32_t>(least + static_cast<int64_t>(get_var(static_cast<uint64_t>(INT32_MAX - least)))));
    if (out.back() == INT32_MAX) break;
  }
  if (out.size() != count) fail();
  return out;
}

Signature WireReader::get_signature() {
  Signature out;
  out.op = in_.get_enum(kLastOp);
  out.dtype = in_.get_enum(kLastDType);
  const OpRow& op = row(out.op);
  const size_t ndim = in_.get<uint8_t>();
  if (op.reduces) {
    const auto reduce = in_.get<uint8_t>();
    if (!is_reduce_op(reduce)) fail();
    out.reduce = static_cast<ReduceOp>(reduce);
    out.prescale = in_.get<double>();
    out.postscale = in_.get<double>();
  }
  if (op.has_root) out.root = get_rank();
  if (op.changes_sets) out.subject = get_ascending();
  if (ndim > Shape::kMaxDims) fail();
  std::array<int64_t, Shape::kMaxDims> dims{};
  for (size_t i = op.dims == DimsRule::AllButFirst ? 1 : 0; good() && i < ndim; ++i) dims[i] = get_dim();
  if (!good()) return Signature{};
  out.shape = Shape(std::span<const int64_t>(dims.data(), ndim));
  if (!check_signature(out).ok()) fail();
  return out;
}

Status WireReader::finish(std::string_view what) const {
  if (!good_) return Status(Code::Internal, cat("malformed ", what, ": a value is out of range"));
  return in_.finish(what);
}

}  // namespace ronde::coord
