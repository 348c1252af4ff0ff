// SPDX-License-Identifier: Apache-2.0
#include "engine/widened.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace ronde::engine {
namespace {

bool is_to_be_widened(const Batch& batch) {
  const bool is_small_integer = row(batch.dtype).kind == NumberKind::Integer && batch.dtype != DType::I64;
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

struct Ways {
  DType dtype;
  void (*widen)(const void* from, int64_t count, int64_t* to);
  void (*narrow)(void* to, const int64_t* from, int64_t count);
};
template <class Small>
constexpr Ways ways(DType dtype) {
  return {dtype, widen<Small>, narrow_to<Small>};
}
constexpr std::array kWays{ways<int8_t>(DType::I8), ways<uint8_t>(DType::U8), ways<int16_t>(DType::I16),
                           ways<uint16_t>(DType::U16), ways<int32_t>(DType::I32)};

const Ways& ways_of(DType dtype) {
  const auto* found = std::ranges::find(kWays, dtype, &Ways::dtype);
  RONDE_CHECK(found != kWays.end(), "an integer dtype that is not 64 bits wide has a row here");
  return *found;
}

}  // namespace

Result<Widened> Widened::make(BoundBatch& bound, size_t self) {
  Widened out;
  const Batch& batch = bound.batch;
  if (!is_to_be_widened(batch)) return out;
  out.dtype_ = batch.dtype;
  const bool is_apart = row(batch.op).output != Output::Same;
  for (size_t t = 0; t < bound.bindings.size(); ++t) {
    Binding& binding = bound.bindings[t];
    const int64_t inputs = batch.tensors[t].shape.count();
    const int64_t results = output_count(batch, t, self);
    const auto all = static_cast<size_t>(is_apart ? inputs + results : inputs);
    std::unique_ptr<int64_t[]> values(new (std::nothrow) int64_t[all]);
    if (!values) return Status(Code::ResourceExhausted, cat("no memory to average ", inputs, " integers exactly"));
    ways_of(out.dtype_).widen(binding.in, inputs, values.get());
    binding.in = values.get();
    int64_t* const at = is_apart ? values.get() + inputs : values.get();
    out.tensors_.push_back({std::move(values), at, results, std::exchange(binding.out, at)});
  }
  bound.batch.dtype = DType::I64;
  return out;
}

void Widened::narrow() const {
  for (const Tensor& tensor : tensors_) ways_of(dtype_).narrow(tensor.out, tensor.results, tensor.count);
}

}  // namespace ronde::engine
