// SPDX-License-Identifier: Apache-2.0
#include "coord/limits.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace ronde::coord {
namespace {

Status refuse(std::string why) {
  return Status(Code::InvalidArgument, std::move(why));
}

Status check_reduction(const Signature& signature) {
  if (!row(signature.op).reduces) {
    const bool neutral = signature.reduce == ReduceOp::Sum && signature.prescale == 1.0 && signature.postscale == 1.0;
    return neutral ? Status() : refuse(cat(name_of(signature.op), " takes no reduce op and no scale factors"));
  }
  if (!is_reduce_op(static_cast<uint8_t>(signature.reduce))) {
    return refuse(cat("there is no reduce op ", static_cast<int>(signature.reduce)));
  }
  if (!std::isfinite(signature.prescale) || !std::isfinite(signature.postscale)) {
    return refuse(cat("scale factors must be finite, these are ", signature.prescale, " and ", signature.postscale));
  }
  return {};
}

Status check_subject(const Signature& signature) {
  const std::vector<int32_t>& subject = signature.subject;
  if (!row(signature.op).changes_sets) {
    return subject.empty() ? Status() : refuse(cat(name_of(signature.op), " changes no process set"));
  }
  if (signature.op == OpKind::RemoveSet) {
    return subject.size() == 1 && subject[0] > 0 ? Status() : refuse("only one process set that was added is removed");
  }
  if (subject.empty()) return refuse("a process set has at least one rank");
  if (subject.size() > kMaxSubject) {
    return refuse(cat("a process set of ", subject.size(), " ranks; at most ", kMaxSubject, " are possible"));
  }
  const bool ascends = std::ranges::adjacent_find(subject, std::greater_equal<>()) == subject.end();
  if (!ascends || subject[0] < 0) return refuse("the ranks of a process set are ascending, from 0 on");
  return {};
}

}  // namespace

int64_t tensor_bytes(const Signature& signature, int64_t first) {
  const auto dims = signature.shape.dims();
  const bool varies = row(signature.op).dims == DimsRule::AllButFirst;
  // Dimensions of 0 count as 1: a later product in another order must not overflow either.
  int64_t bound = static_cast<int64_t>(size_of(signature.dtype));
  bool is_empty = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = varies && i == 0 ? first : dims[i];
    is_empty = is_empty || dim == 0;
    if (dim < 0 || __builtin_mul_overflow(bound, std::max<int64_t>(dim, 1), &bound) || bound > kMaxTensorBytes)
      return -1;
  }
  return is_empty ? 0 : bound;
}

int64_t sum_of(std::span<const int64_t> first_dims) {
  int64_t out = 0;
  for (const int64_t dim : first_dims) {
    if (dim < 0 || __builtin_add_overflow(out, dim, &out)) return -1;
  }
  return out;
}

Status check_signature(const Signature& signature) {
  if (static_cast<uint8_t>(signature.op) > static_cast<uint8_t>(kLastOp)) {
    return refuse(cat("there is no op ", static_cast<int>(signature.op)));
  }
  if (static_cast<uint8_t>(signature.dtype) > static_cast<uint8_t>(kLastDType)) {
    return refuse(cat("there is no dtype ", static_cast<int>(signature.dtype)));
  }
  const OpRow& op = row(signature.op);
  RONDE_TRY(check_reduction(signature));
  RONDE_TRY(check_subject(signature));
  if (signature.root < 0 || (!op.has_root && signature.root != 0)) {
    return refuse(cat("root rank ", signature.root, " is not possible"));
  }
  if (op.works_on_rows() && signature.shape.ndim() == 0) {
    return refuse("a scalar has no first dimension; reshape it to [1]");
  }
  if (op.dims == DimsRule::AllButFirst && signature.shape[0] != 0) {
    return refuse("the first dimension is not part of the signature");
  }
  if (tensor_bytes(signature, 0) < 0) {
    return refuse(cat("the shape ", signature.shape.to_string(), " is negative or exceeds 2^60 bytes"));
  }
  return {};
}

}  // namespace ronde::coord
