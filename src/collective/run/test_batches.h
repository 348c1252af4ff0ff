// SPDX-License-Identifier: Apache-2.0
// For tests: batches with random contents for all their members, and a naive reference of what must come out.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "op/batch.h"

namespace ronde::collective {

using Random = std::mt19937_64;

inline int uniform(Random& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

// Elements as doubles: exact for what fill_small() makes.
inline double element(DType dtype, const Bytes& bytes, int64_t i) {
  const std::byte* at = bytes.data() + static_cast<size_t>(i) * size_of(dtype);
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  };
  float wide = 0;
  switch (dtype) {
    case DType::F32:
      return as(float{});
    case DType::F64:
      return as(double{});
    case DType::F16:
    case DType::BF16:
      convert(DType::F32, &wide, dtype, at, 1);
      return wide;
    case DType::I32:
      return as(int32_t{});
    case DType::I64:
      return as(int64_t{});
    case DType::U8:
    case DType::Bool:
      return as(uint8_t{});
  }
  return 0;
}

inline void set_element(DType dtype, Bytes& bytes, int64_t i, double value) {
  std::byte* at = bytes.data() + static_cast<size_t>(i) * size_of(dtype);
  const auto as = [&]<class T>(T narrow) { std::memcpy(at, &narrow, sizeof narrow); };
  const auto wide = static_cast<float>(value);
  switch (dtype) {
    case DType::F32:
      return as(wide);
    case DType::F64:
      return as(value);
    case DType::F16:
    case DType::BF16:
      return convert(dtype, at, DType::F32, &wide, 1);
    case DType::I32:
      return as(static_cast<int32_t>(value));
    case DType::I64:
      return as(static_cast<int64_t>(value));
    case DType::U8:
    case DType::Bool:
      return as(static_cast<uint8_t>(value));
  }
}

enum class Fill { Small, Wild };

// Small: values whose sums and products over 8 members are exact in every dtype. Wild: full mantissas of mixed sizes,
// so that the order and the rounding of every single addition shows in the bits.
inline void fill(DType dtype, Bytes& bytes, Fill how, Random& random) {
  const auto count = static_cast<int64_t>(bytes.size() / size_of(dtype));
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = random();
    const int small = static_cast<int>(bits % 5) - 2;  // -2 ... 2
    double value = small;
    if (dtype == DType::Bool || dtype == DType::U8) value = static_cast<double>(bits % (dtype == DType::Bool ? 2 : 3));
    if (how == Fill::Wild && row(dtype).is_float)
      value = std::ldexp(static_cast<double>(static_cast<int64_t>(bits)), static_cast<int>(bits % 13) - 68);
    set_element(dtype, bytes, i, value);
  }
}

// A batch as all its members see it.
struct TestBatch {
  Batch batch;
  bool in_place = false;
  std::vector<std::vector<Bytes>> inputs;     // by member and tensor
  std::vector<std::vector<Bytes>> originals;  // copies of them
  std::vector<std::vector<Bytes>> outputs;    // by member and tensor; unused if in place
  std::vector<BoundBatch> bound;              // by member

  const Bytes& result(size_t member, size_t tensor) const {
    return in_place ? inputs[member][tensor] : outputs[member][tensor];
  }
};

inline size_t bytes_of(const Batch& batch, int64_t count) {
  return static_cast<size_t>(count) * size_of(batch.dtype);
}

inline TestBatch make_test_batch(const Batch& batch, Fill how, bool in_place, Random& random) {
  TestBatch out;
  out.batch = batch;
  out.in_place = in_place && batch.op != OpKind::Allgather;
  for (size_t m = 0; m < batch.members.size(); ++m) {
    auto& inputs = out.inputs.emplace_back();
    auto& outputs = out.outputs.emplace_back();
    for (size_t t = 0; t < batch.tensors.size(); ++t) {
      fill(batch.dtype, inputs.emplace_back(bytes_of(batch, count_of(batch, t, m))), how, random);
      outputs.emplace_back(bytes_of(batch, output_count(batch, t)), std::byte{0xEE});
    }
  }
  out.originals = out.inputs;
  for (size_t m = 0; m < batch.members.size(); ++m) {
    BoundBatch& bound = out.bound.emplace_back();
    bound.batch = batch;
    for (size_t t = 0; t < batch.tensors.size(); ++t) {
      Bytes& in = out.inputs[m][t];
      bound.bindings.push_back({.in = in.data(), .out = out.in_place ? in.data() : out.outputs[m][t].data()});
    }
  }
  return out;
}

inline double reference_scale(DType dtype, double x, Scale scale) {
  if (scale.is_identity() || dtype == DType::Bool) return x;
  const double scaled = x * scale.factor / static_cast<double>(scale.divisor);
  if (row(dtype).is_float) return scaled;
  return std::trunc(dtype == DType::U8 ? std::clamp(scaled, 0.0, 255.0) : scaled);
}

inline double reference_combine(Combine op, DType dtype, double a, double b) {
  switch (op) {
    case Combine::Sum:
      if (dtype == DType::Bool) return std::max(a, b);
      return dtype == DType::U8 ? std::fmod(a + b, 256) : a + b;
    case Combine::Product:
      return dtype == DType::U8 ? std::fmod(a * b, 256) : a * b;
    case Combine::Min:
      return std::min(a, b);
    case Combine::Max:
      return std::max(a, b);
  }
  return 0;
}

// Element i of the output of tensor t, from what the members put in.
inline double reference_element(const TestBatch& test, size_t t, int64_t i) {
  const Batch& batch = test.batch;
  if (batch.op == OpKind::Allgather) {
    size_t owner = 0;
    for (; i >= count_of(batch, t, owner); ++owner) i -= count_of(batch, t, owner);
    return element(batch.dtype, test.originals[owner][t], i);
  }
  if (batch.op == OpKind::Broadcast) {
    const auto root = std::ranges::find(batch.members, batch.root) - batch.members.begin();
    return element(batch.dtype, test.originals[static_cast<size_t>(root)][t], i);
  }
  const Reduction reduction = reduction_of(batch);
  double sum = 0;
  for (size_t m = 0; m < batch.members.size(); ++m) {
    const double own = reference_scale(batch.dtype, element(batch.dtype, test.originals[m][t], i), reduction.pre);
    sum = m == 0 ? own : reference_combine(reduction.combine, batch.dtype, sum, own);
  }
  return reference_scale(batch.dtype, sum, reduction.post);
}

// How far a result may be from the reference: postscales round, everything else in small contents is exact.
inline double tolerance(DType dtype, double value) {
  switch (dtype) {
    case DType::F32:
      return std::abs(value) * 1e-6;
    case DType::F64:
      return std::abs(value) * 1e-14;
    case DType::F16:
      return std::abs(value) * 1e-3;
    case DType::BF16:
      return std::abs(value) * 8e-3;
    default:
      return 0;
  }
}

inline void expect_members_equal(const TestBatch& test) {
  for (size_t m = 1; m < test.batch.members.size(); ++m)
    for (size_t t = 0; t < test.batch.tensors.size(); ++t)
      ASSERT_EQ(test.result(m, t), test.result(0, t))
          << "batch " << test.batch.number << ", member " << m << ", tensor " << t;
}

// The first member has the reference, the others have the same bits, and inputs are as they were.
inline void expect_reference(const TestBatch& test) {
  const Batch& batch = test.batch;
  for (size_t t = 0; t < batch.tensors.size(); ++t) {
    for (int64_t i = 0; i < output_count(batch, t); ++i) {
      const double wanted = reference_element(test, t, i);
      const double got = element(batch.dtype, test.result(0, t), i);
      // Assertions are too slow to be made for each element.
      if (std::abs(got - wanted) <= tolerance(batch.dtype, wanted)) continue;
      FAIL() << got << " instead of " << wanted << " in batch " << batch.number << ", tensor " << t << ", element "
             << i;
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_members_equal(test));
  if (test.in_place) return;
  ASSERT_EQ(test.inputs, test.originals) << "an input was modified";
}

// Tensors of a batch: one dimension each; of an allgather uneven rows of 3 elements.
inline void add_tensors(Batch& batch, std::span<const int64_t> counts, Random& random) {
  for (const int64_t count : counts) {
    BatchTensor& tensor = batch.tensors.emplace_back();
    tensor.shape = Shape{count};
    if (batch.op != OpKind::Allgather) continue;
    tensor.shape = Shape{0, 3};
    for (size_t m = 0; m < batch.members.size(); ++m)
      tensor.first_dims.push_back(uniform(random, 0, 3) == 0 ? 0 : uniform(random, 0, static_cast<int>(count)));
  }
}

inline std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> out;
  for (Rank rank = 0; rank < count; ++rank) out.push_back(rank);
  return out;
}

}  // namespace ronde::collective
