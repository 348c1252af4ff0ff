// SPDX-License-Identifier: Apache-2.0
#include "op/batch.h"

#include <numeric>

namespace ronde {
namespace {

bool first_differs(const Batch& batch) {
  return row(batch.op).dims == DimsRule::AllButFirst;
}

// Elements of one step along the first dimension.
int64_t row_count(const Shape& shape) {
  return shape.with_first(1).count();
}

int64_t all_rows(const BatchTensor& tensor) {
  return std::accumulate(tensor.first_dims.begin(), tensor.first_dims.end(), int64_t{0});
}

}  // namespace

int64_t count_of(const Batch& batch, size_t t, size_t index) {
  if (!row(batch.op).has_tensor) return 0;
  const BatchTensor& tensor = batch.tensors[t];
  if (!first_differs(batch)) return tensor.shape.count();
  RONDE_CHECK(index < tensor.first_dims.size(), "a member without a first dimension");
  return tensor.first_dims[index] * row_count(tensor.shape);
}

int64_t output_count(const Batch& batch, size_t t) {
  return row(batch.op).has_tensor ? output_shape(batch, t).count() : 0;
}

Shape output_shape(const Batch& batch, size_t t) {
  const BatchTensor& tensor = batch.tensors[t];
  return first_differs(batch) ? tensor.shape.with_first(all_rows(tensor)) : tensor.shape;
}

int64_t input_bytes(const Batch& batch, size_t index) {
  int64_t count = 0;
  for (size_t t = 0; t < batch.tensors.size(); ++t) count += count_of(batch, t, index);
  return count * static_cast<int64_t>(size_of(batch.dtype));
}

Reduction reduction_of(const Batch& batch) {
  Reduction out;
  if (!row(batch.op).reduces) return out;
  out.pre.factor = batch.prescale;
  out.post.factor = batch.postscale;
  switch (batch.reduce) {
    case ReduceOp::Average:
      out.post.divisor = static_cast<int64_t>(batch.members.size());
      break;
    case ReduceOp::Sum:
      break;
    case ReduceOp::Min:
      out.combine = Combine::Min;
      break;
    case ReduceOp::Max:
      out.combine = Combine::Max;
      break;
    case ReduceOp::Product:
      out.combine = Combine::Product;
      break;
  }
  return out;
}

}  // namespace ronde
