// SPDX-License-Identifier: Apache-2.0
#include "engine/validate.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace ronde::engine {
namespace {

constexpr size_t kMaxNameBytes = 1024;

Status wrong(const Request& request, std::string text) {
  const bool is_named = !request.name.empty();
  const std::string what =
      is_named ? describe(request.signature, request.name, 0) : std::string(name_of(request.signature.op));
  return Status(Code::InvalidArgument, cat(what, ": ", text));
}

// "0 ... 7", "0, 2, 5"
std::string listed(const std::vector<Rank>& members) {
  if (members.back() - members.front() + 1 == static_cast<Rank>(members.size())) {
    return cat(members.front(), " ... ", members.back());
  }
  std::vector<std::string> words;
  for (const Rank rank : members) words.push_back(cat(rank));
  return ronde::listed(words);
}

Status validate_set_change(const Request& request, const std::vector<Rank>& members) {
  const std::vector<int32_t>& subject = request.signature.subject;
  if (request.signature.op == OpKind::RemoveSet) {
    return subject[0] > 0 ? Status() : wrong(request, "the set of all ranks cannot be removed");
  }
  if (subject.empty()) return wrong(request, "a process set has at least one rank");
  for (size_t i = 0; i < subject.size(); ++i) {
    if (i > 0 && subject[i] <= subject[i - 1]) {
      return wrong(request,
                   cat("rank ", subject[i], " after rank ", subject[i - 1], "; ranks are given ascending, once each"));
    }
    if (!std::ranges::binary_search(members, subject[i])) {
      return wrong(request, cat("rank ", subject[i], " is not one of the ranks ", listed(members)));
    }
  }
  return {};
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
  if (!is_possible(signature.reduce, signature.dtype)) {
    return wrong(request,
                 cat(name_of(signature.dtype), " numbers have no ", name_of(signature.reduce), "; use sum or average"));
  }
  if (!std::isfinite(signature.prescale) || !std::isfinite(signature.postscale)) {
    return wrong(request, cat("scale factors must be finite, not ", signature.prescale, " and ", signature.postscale));
  }
  return {};
}

// None at all: equal parts.
Status validate_splits(const Request& request, std::span<const int64_t> splits, size_t ranks) {
  if (splits.empty() && request.first_dim % static_cast<int64_t>(ranks) == 0) return {};
  if (splits.empty()) {
    return wrong(request, cat("its ", request.first_dim, " rows cannot be divided by ", ranks,
                              " ranks; say with splits how many are for each"));
  }
  if (splits.size() != ranks) {
    return wrong(request, cat(splits.size(), " splits for ", ranks, " ranks"));
  }
  int64_t left = request.first_dim;
  for (const int64_t rows : splits) {
    if (rows < 0) return wrong(request, cat("a split of ", rows, " rows"));
    left -= std::min(rows, left + 1);
  }
  if (left < 0) return wrong(request, cat("the splits have more than the ", request.first_dim, " rows of the tensor"));
  return {};
}

}  // namespace

Status validate(const Request& request, const Binding& binding, const std::vector<Rank>& members) {
  const Signature& signature = request.signature;
  const OpRow& op = row(signature.op);
  if (request.name.size() > kMaxNameBytes) {
    return Status(Code::InvalidArgument, cat("the name of an ", op.name, " has ", request.name.size(),
                                             " bytes; at most ", kMaxNameBytes, " are allowed"));
  }
  for (const int64_t dim : signature.shape.dims()) {
    if (dim < 0) return wrong(request, cat("negative dimension ", dim));
  }
  if (op.changes_sets) return validate_set_change(request, members);
  if (!op.has_tensor()) return {};
  if (op.works_on_rows() && signature.shape.ndim() == 0) {
    return wrong(request, "a scalar has no first dimension; reshape it to [1]");
  }
  if (request.first_dim < 0) return wrong(request, cat("negative first dimension ", request.first_dim));
  if (!fits(request))
    return wrong(request, cat("the tensor ", signature.to_string(), " is larger than the address space"));
  if (op.has_root && !std::ranges::binary_search(members, signature.root)) {
    return wrong(request, cat("root rank ", signature.root, " is not one of the ranks ", listed(members)));
  }
  if (op.reduces) RONDE_TRY(validate_reduction(request));
  if (op.output == Output::Exchanged) RONDE_TRY(validate_splits(request, binding.splits, members.size()));
  if (has_elements(request) && (binding.in == nullptr || (!op.allocates_output() && binding.out == nullptr))) {
    return wrong(request, "no memory was given for a tensor with elements");
  }
  return {};
}

}  // namespace ronde::engine
