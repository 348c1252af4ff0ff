// SPDX-License-Identifier: Apache-2.0
#include "engine/validate.h"

#include <cmath>

namespace ronde::engine {
namespace {

constexpr size_t kMaxNameBytes = 1024;

Status wrong(const Request& request, std::string text) {
  const bool is_named = !request.name.empty();
  const std::string what =
      is_named ? describe(request.signature, request.name, 0) : std::string(name_of(request.signature.op));
  return Status(Code::InvalidArgument, cat(what, ": ", text));
}

// Elements times element size must fit 63 bits.
bool fits(const Request& request) {
  int64_t bytes = static_cast<int64_t>(size_of(request.signature.dtype));
  for (const int64_t dim : request.signature.shape.dims()) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return false;
  }
  const int64_t rows = row(request.signature.op).dims == DimsRule::AllButFirst ? request.first_dim : 1;
  return !__builtin_mul_overflow(bytes, rows, &bytes);
}

bool has_elements(const Request& request) {
  const Shape& shape = request.signature.shape;
  if (row(request.signature.op).dims == DimsRule::All) return shape.count() > 0;
  return shape.with_first(request.first_dim).count() > 0;
}

Status validate_reduction(const Request& request) {
  const Signature& signature = request.signature;
  if (signature.dtype == DType::Bool && signature.reduce == ReduceOp::Average) {
    return wrong(request, "an average of bool has no meaning; use sum (or), product (and), min or max");
  }
  if (!std::isfinite(signature.prescale) || !std::isfinite(signature.postscale)) {
    return wrong(request, cat("scale factors must be finite, not ", signature.prescale, " and ", signature.postscale));
  }
  return {};
}

}  // namespace

Status validate(const Request& request, const Binding& binding, Rank size) {
  const Signature& signature = request.signature;
  const OpRow& op = row(signature.op);
  if (request.name.size() > kMaxNameBytes) {
    return Status(Code::InvalidArgument, cat("the name of an ", op.name, " has ", request.name.size(),
                                             " bytes; at most ", kMaxNameBytes, " are allowed"));
  }
  for (const int64_t dim : signature.shape.dims()) {
    if (dim < 0) return wrong(request, cat("negative dimension ", dim));
  }
  if (!op.has_tensor) return {};
  if (op.dims == DimsRule::AllButFirst && signature.shape.ndim() == 0) {
    return wrong(request, "a scalar has no first dimension to gather along; reshape it to [1]");
  }
  if (request.first_dim < 0) return wrong(request, cat("negative first dimension ", request.first_dim));
  if (!fits(request))
    return wrong(request, cat("the tensor ", signature.to_string(), " is larger than the address space"));
  if (op.has_root && (signature.root < 0 || signature.root >= size)) {
    return wrong(request, cat("root rank ", signature.root, " is not in the job: ranks are 0 ... ", size - 1));
  }
  if (op.reduces) RONDE_TRY(validate_reduction(request));
  if (has_elements(request) && (binding.in == nullptr || (!op.allocates_output && binding.out == nullptr))) {
    return wrong(request, "no memory was given for a tensor with elements");
  }
  return {};
}

}  // namespace ronde::engine
