// SPDX-License-Identifier: Apache-2.0
#include "op/batch.h"

#include <algorithm>
#include <numeric>

namespace ronde {
namespace {

int64_t all_rows(const BatchTensor& tensor) {
  return std::accumulate(tensor.first_dims.begin(), tensor.first_dims.end(), int64_t{0});
}

int64_t scattered_rows(const Batch& batch, const BatchTensor& tensor, size_t index) {
  const auto members = static_cast<int64_t>(batch.members.size());
  const int64_t left_over = tensor.shape[0] % members;
  return tensor.shape[0] / members + (static_cast<int64_t>(index) < left_over ? 1 : 0);
}

}  // namespace

size_t index_of(const Batch& batch, Rank rank) {
  const auto found = std::ranges::lower_bound(batch.members, rank);
  RONDE_CHECK(found != batch.members.end() && *found == rank, "a rank of a batch is one of its members");
  return static_cast<size_t>(found - batch.members.begin());
}

int64_t row_count(const Shape& shape) {
  return shape.with_first(1).count();
}

int64_t count_of(const Batch& batch, size_t t, size_t index) {
  const BatchTensor& tensor = batch.tensors[t];
  switch (row(batch.op).output) {
    case Output::None:
      return 0;
    case Output::Same:
      return tensor.shape.count();
    case Output::AllRows:
      RONDE_CHECK(index < tensor.first_dims.size(), "a member without a first dimension");
      return tensor.first_dims[index] * row_count(tensor.shape);
    case Output::OwnRows:
      return scattered_rows(batch, tensor, index) * row_count(tensor.shape);
    case Output::Exchanged:
      break;
  }
  RONDE_CHECK(false, "only the members themselves know what they exchange");
}

int64_t output_count(const Batch& batch, size_t t, size_t index) {
  return row(batch.op).has_tensor() ? output_shape(batch, t, index).count() : 0;
}

Shape output_shape(const Batch& batch, size_t t, size_t index) {
  const BatchTensor& tensor = batch.tensors[t];
  switch (row(batch.op).output) {
    case Output::AllRows:
      return tensor.shape.with_first(all_rows(tensor));
    case Output::OwnRows:
      return tensor.shape.with_first(scattered_rows(batch, tensor, index));
    default:
      return tensor.shape;
  }
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
