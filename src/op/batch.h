// SPDX-License-Identifier: Apache-2.0
// What a batch means for one member's memory: its tensors bound to pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "op/request.h"

namespace ronde {

// A member's own memory of one tensor of a batch. in == out is in place.
struct Binding {
  const void* in = nullptr;
  void* out = nullptr;
  std::vector<int64_t> splits;  // alltoall: the rows for each member, in their order; rows after them are for nobody
};

struct BoundBatch {
  Batch batch;
  std::vector<Binding> bindings;  // one per tensor
  // Output::Exchanged: memory for the output of tensor `t`, now that it is known how many rows each member sends.
  std::function<Result<std::byte*>(size_t t, std::span<const int64_t> rows)> allocate;
};

// Where a member of the batch stands among its members.
size_t index_of(const Batch& batch, Rank rank);

// Elements of tensor `t` that belong to member `index`: of an allgather the rows that it gives, of a reducescatter
// those that it gets (the first members get one more where rows are left over), else the whole tensor.
int64_t count_of(const Batch& batch, size_t t, size_t index);
// What member `index` gets of tensor `t`, in elements and as a shape. Not known of Output::Exchanged.
int64_t output_count(const Batch& batch, size_t t, size_t index);
Shape output_shape(const Batch& batch, size_t t, size_t index);
// Elements of one row: of a step along the first dimension.
int64_t row_count(const Shape& shape);

// How the reduce op is computed: which kernel, and what follows it. Average is Sum and a division by the members.
struct Reduction {
  Combine combine = Combine::Sum;
  Scale pre;
  Scale post;
};
Reduction reduction_of(const Batch& batch);

}  // namespace ronde
