// SPDX-License-Identifier: Apache-2.0
#include "op/request.h"

#include "base/check.h"
#include "base/text.h"

namespace ronde {
namespace {

std::string shape_text(const Signature& signature) {
  const bool first_differs = row(signature.op).dims == DimsRule::AllButFirst;
  std::string out = "[";
  for (size_t i = 0; i < signature.shape.ndim(); ++i) {
    if (i > 0) out += ", ";
    out += i == 0 && first_differs ? "*" : cat(signature.shape[i]);
  }
  return out + "]";
}

}  // namespace

std::string Signature::to_string() const {
  const OpRow& op_row = row(op);
  std::string out(op_row.name);
  if (op_row.reduces) out += cat("(", name_of(reduce), ")");
  if (op_row.has_tensor()) out += cat(" ", name_of(dtype), shape_text(*this));
  if (op_row.has_root) out += cat(" from rank ", root);
  for (size_t i = 0; i < subject.size(); ++i) out += cat(i == 0 ? " " : ", ", subject[i]);
  if (prescale != 1.0) out += cat(" prescale=", prescale);
  if (postscale != 1.0) out += cat(" postscale=", postscale);
  return out;
}

Request make_request(OpKind op, std::string name, DType dtype, const Shape& shape, ReduceOp reduce, Rank root,
                     double prescale, double postscale, SetId set) {
  const OpRow& op_row = row(op);
  Request out;
  out.set = set;
  out.name = std::move(name);
  out.signature.op = op;
  if (op_row.has_tensor()) {
    out.signature.dtype = dtype;
    out.signature.shape = shape;
  }
  if (op_row.reduces) {
    out.signature.reduce = reduce;
    out.signature.prescale = prescale;
    out.signature.postscale = postscale;
  }
  if (op_row.has_root) out.signature.root = root;
  if (op_row.dims == DimsRule::AllButFirst) {
    RONDE_CHECK(shape.ndim() > 0, "a tensor without dimensions has no first one");
    out.first_dim = shape[0];
    out.signature.shape = shape.with_first(0);
  }
  return out;
}

Request make_set_request(OpKind op, std::vector<int32_t> subject) {
  Request out;
  out.name = "ronde.process_sets";
  out.signature.op = op;
  out.signature.subject = std::move(subject);
  return out;
}

std::string describe(const Signature& signature, std::string_view name, uint64_t number) {
  if (row(signature.op).changes_sets) return std::string(name_of(signature.op));
  if (name.empty()) return cat("unnamed ", name_of(signature.op), " ", number);
  return cat(name_of(signature.op), " '", name, "'");
}

}  // namespace ronde
