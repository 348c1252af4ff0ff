// SPDX-License-Identifier: Apache-2.0
#include "engine/widened.h"

#include <algorithm>
#include <new>

namespace ronde::engine {
namespace {

bool is_to_be_widened(const Batch& batch) {
  const bool is_small_integer = batch.dtype == DType::I32 || batch.dtype == DType::U8;
  return is_small_integer && row(batch.op).reduces && batch.reduce == ReduceOp::Average;
}

template <class Small>
void widen(const void* from, int64_t count, int64_t* to) {
  std::copy_n(static_cast<const Small*>(from), count, to);
}

template <class Small>
void narrow_to(void* to, const int64_t* from, int64_t count) {
  std::transform(from, from + count, static_cast<Small*>(to), [](int64_t value) { return static_cast<Small>(value); });
}

}  // namespace

Result<Widened> Widened::make(BoundBatch& bound) {
  Widened out;
  if (!is_to_be_widened(bound.batch)) return out;
  out.dtype_ = bound.batch.dtype;
  for (size_t t = 0; t < bound.bindings.size(); ++t) {
    Binding& binding = bound.bindings[t];
    const int64_t count = output_count(bound.batch, t);
    std::unique_ptr<int64_t[]> values(new (std::nothrow) int64_t[static_cast<size_t>(count)]);
    if (!values) return Status(Code::ResourceExhausted, cat("no memory to average ", count, " integers exactly"));
    (out.dtype_ == DType::U8 ? widen<uint8_t> : widen<int32_t>)(binding.in, count, values.get());
    out.tensors_.push_back({std::move(values), count, binding.out});
    binding.in = binding.out = out.tensors_.back().values.get();
  }
  bound.batch.dtype = DType::I64;
  return out;
}

void Widened::narrow() const {
  for (const Tensor& tensor : tensors_) {
    (dtype_ == DType::U8 ? narrow_to<uint8_t> : narrow_to<int32_t>)(tensor.out, tensor.values.get(), tensor.count);
  }
}

}  // namespace ronde::engine
