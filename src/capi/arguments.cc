// SPDX-License-Identifier: Apache-2.0
#include "capi/arguments.h"

namespace ronde::capi {
namespace {

Status wrong(const ronde_tensor& tensor, std::string text) {
  const std::string name = tensor.name != nullptr && *tensor.name != 0 ? cat("'", tensor.name, "'") : "unnamed tensor";
  return Status(Code::InvalidArgument, cat(name, ": ", text));
}

Status check_ranges(const ronde_tensor& tensor) {
  if (tensor.struct_size != sizeof(ronde_tensor)) {
    return wrong(tensor, cat("struct_size is ", tensor.struct_size, ", this library expects ", sizeof(ronde_tensor)));
  }
  if (tensor.op < 0 || tensor.op > RONDE_ALLTOALL) return wrong(tensor, cat("there is no op ", tensor.op));
  if (tensor.dtype < 0 || tensor.dtype > static_cast<int>(kLastDType)) {
    std::string known;
    for (const DTypeRow& dtype : kDTypes) known += cat(known.empty() ? "" : ", ", dtype.name);
    return wrong(tensor, cat("there is no dtype ", tensor.dtype, "; supported are ", known));
  }
  if (tensor.ndim < 0 || tensor.ndim > static_cast<int>(Shape::kMaxDims)) {
    return wrong(tensor, cat(tensor.ndim, " dimensions; at most ", Shape::kMaxDims, " are supported"));
  }
  const OpRow& op = row(static_cast<OpKind>(tensor.op));
  if (op.works_on_rows() && tensor.ndim == 0) {
    return wrong(tensor, cat(op.name, ": a scalar has no first dimension; reshape it to [1]"));
  }
  if (tensor.split_count < 0 || (tensor.split_count > 0 && tensor.splits == nullptr)) {
    return wrong(tensor, cat(tensor.split_count, " splits"));
  }
  if (op.reduces && (tensor.reduce_op < 0 || tensor.reduce_op > static_cast<int>(kLastReduceOp) ||
                     !is_reduce_op(static_cast<uint8_t>(tensor.reduce_op)))) {
    return wrong(tensor, cat("there is no reduce op ", tensor.reduce_op));
  }
  return {};
}

}  // namespace

Result<std::vector<engine::Submission>> to_submissions(const ronde_tensor* tensors, size_t count) {
  if (count > 0 && tensors == nullptr) return Status(Code::InvalidArgument, "no tensors were given");
  std::vector<engine::Submission> out;
  out.reserve(count);
  for (const ronde_tensor& tensor : std::span(tensors, count)) {
    RONDE_TRY(check_ranges(tensor));
    const Shape shape(std::span(tensor.dims, static_cast<size_t>(tensor.ndim)));
    const bool reduces = row(static_cast<OpKind>(tensor.op)).reduces;
    const auto reduce = reduces ? static_cast<ReduceOp>(tensor.reduce_op) : ReduceOp::Sum;
    out.push_back(
        {.request = make_request(static_cast<OpKind>(tensor.op), tensor.name != nullptr ? tensor.name : "",
                                 static_cast<DType>(tensor.dtype), shape, reduce, tensor.root, tensor.prescale,
                                 tensor.postscale, tensor.set),
         .binding = {
             .in = tensor.input, .out = tensor.output, .splits = {tensor.splits, tensor.splits + tensor.split_count}}});
  }
  return out;
}

}  // namespace ronde::capi
