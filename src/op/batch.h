// SPDX-License-Identifier: Apache-2.0
// What a batch means for one member's memory: its tensors bound to pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "op/request.h"

namespace ronde {

// A member's own memory of one tensor of a batch. in == out is in place.
struct Binding {
  const void* in = nullptr;
  void* out = nullptr;
};

struct BoundBatch {
  Batch batch;
  std::vector<Binding> bindings;  // one per tensor
};

// Elements that member `index` contributes to tensor `t` (allgather: its own rows; else the whole tensor).
int64_t count_of(const Batch& batch, size_t t, size_t index);
// Elements of the output of tensor `t`.
int64_t output_count(const Batch& batch, size_t t);
// Shape of the output of tensor `t`.
Shape output_shape(const Batch& batch, size_t t);
// Bytes that all tensors of the batch take in the input of member `index`.
int64_t input_bytes(const Batch& batch, size_t index);

// How the reduce op is computed: which kernel, and what follows it. Average is Sum and a division by the members.
struct Reduction {
  Combine combine = Combine::Sum;
  Scale pre;
  Scale post;
};
Reduction reduction_of(const Batch& batch);

}  // namespace ronde
