// SPDX-License-Identifier: Apache-2.0
// For tests: batches with random contents for all their members, and a naive reference of what must come out.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <utility>
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
    case DType::I8:
      return as(int8_t{});
    case DType::I16:
      return as(int16_t{});
    case DType::U16:
      return as(uint16_t{});
    case DType::C64:
    case DType::C128:
      break;  // only their parts are looked at
  }
  return NAN;
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
    case DType::I8:
      return as(static_cast<int8_t>(value));
    case DType::I16:
      return as(static_cast<int16_t>(value));
    case DType::U16:
      return as(static_cast<uint16_t>(value));
    case DType::C64:
    case DType::C128:
      break;  // only their parts are filled
  }
}

inline bool is_unsigned(DType dtype) {
  return dtype == DType::U8 || dtype == DType::U16;
}

// The value that an integer of this dtype has after it was computed without a limit.
inline double wrapped(DType dtype, double value) {
  if (row(dtype).kind != NumberKind::Integer || size_of(dtype) == 8) return value;  // no test comes near 2^53
  const double range = std::ldexp(1.0, static_cast<int>(8 * size_of(dtype)));
  const double rest = value - std::floor(value / range) * range;
  return !is_unsigned(dtype) && rest >= range / 2 ? rest - range : rest;
}

enum class Fill { Small, Wild };

// Small: values whose sums and products over 8 members are exact in every dtype. Wild: full mantissas of mixed sizes,
// so that the order and the rounding of every single addition shows in the bits.
inline void fill(DType dtype, Bytes& bytes, Fill how, Random& random) {
  if (row(dtype).kind == NumberKind::Complex) return fill(part_of(dtype), bytes, how, random);
  const auto count = static_cast<int64_t>(bytes.size() / size_of(dtype));
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = random();
    const int small = static_cast<int>(bits % 5) - 2;  // -2 ... 2
    double value = small;
    if (dtype == DType::Bool || is_unsigned(dtype)) value = static_cast<double>(bits % (dtype == DType::Bool ? 2 : 3));
    if (how == Fill::Wild && row(dtype).kind == NumberKind::Float)
      value = std::ldexp(static_cast<double>(static_cast<int64_t>(bits)), static_cast<int>(bits % 13) - 68);
    set_element(dtype, bytes, i, value);
  }
}

// A batch as all its members see it.
struct TestBatch {
  Batch batch;
  bool in_place = false;
  std::vector<std::vector<Bytes>> inputs;                 // by member and tensor
  std::vector<std::vector<Bytes>> originals;              // copies of them
  std::vector<std::vector<Bytes>> outputs;                // by member and tensor; unused if in place
  std::vector<std::vector<std::vector<int64_t>>> splits;  // by member and tensor: rows for each member; alltoall
  std::vector<BoundBatch> bound;                          // by member

  const Bytes& result(size_t member, size_t tensor) const {
    return in_place ? inputs[member][tensor] : outputs[member][tensor];
  }
};

inline size_t bytes_of(const Batch& batch, int64_t count) {
  return static_cast<size_t>(count) * size_of(batch.dtype);
}

// Rows that nobody gets follow those that somebody gets.
constexpr int64_t kRowsForNobody = 2;

inline std::vector<int64_t> random_splits(size_t members, int most, Random& random) {
  std::vector<int64_t> out;
  for (size_t m = 0; m < members; ++m) out.push_back(uniform(random, 0, 3) == 0 ? 0 : uniform(random, 0, most));
  return out;
}

inline int64_t sum(std::span<const int64_t> rows) {
  return std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

// Elements that member m puts in.
inline int64_t input_count(const TestBatch& test, size_t t, size_t m) {
  const Shape& shape = test.batch.tensors[t].shape;
  switch (row(test.batch.op).output) {
    case Output::OwnRows:
      return shape.count();
    case Output::Exchanged:
      return (sum(test.splits[m][t]) + kRowsForNobody) * row_count(shape);
    default:
      return count_of(test.batch, t, m);
  }
}

// Elements that member m gets out.
inline int64_t result_count(const TestBatch& test, size_t t, size_t m) {
  if (row(test.batch.op).output != Output::Exchanged) return output_count(test.batch, t, m);
  int64_t rows = 0;
  for (const auto& of_member : test.splits) rows += of_member[t][m];
  return rows * row_count(test.batch.tensors[t].shape);
}

inline TestBatch make_test_batch(const Batch& batch, Fill how, bool in_place, Random& random) {
  TestBatch out;
  const size_t members = batch.members.size();
  const bool exchanges = row(batch.op).output == Output::Exchanged;
  out.batch = batch;
  out.in_place = in_place && row(batch.op).output == Output::Same;
  for (size_t m = 0; m < members; ++m) {
    auto& splits = out.splits.emplace_back();
    for (const BatchTensor& tensor : batch.tensors) {
      const auto most = static_cast<int>(tensor.number);  // of the rows; see add_tensors()
      splits.push_back(exchanges ? random_splits(members, most, random) : std::vector<int64_t>{});
    }
  }
  for (size_t m = 0; m < members; ++m) {
    auto& inputs = out.inputs.emplace_back();
    auto& outputs = out.outputs.emplace_back();
    for (size_t t = 0; t < batch.tensors.size(); ++t) {
      fill(batch.dtype, inputs.emplace_back(bytes_of(batch, input_count(out, t, m))), how, random);
      outputs.emplace_back(bytes_of(batch, result_count(out, t, m)), std::byte{0xEE});
    }
  }
  out.originals = out.inputs;
  for (size_t m = 0; m < members; ++m) {
    BoundBatch& bound = out.bound.emplace_back();
    bound.batch = batch;
    for (size_t t = 0; t < batch.tensors.size(); ++t) {
      Bytes& in = out.inputs[m][t];
      std::byte* const result = exchanges ? nullptr : out.in_place ? in.data() : out.outputs[m][t].data();
      bound.bindings.push_back({.in = in.data(), .out = result, .splits = out.splits[m][t]});
    }
    if (!exchanges) continue;
    std::vector<int64_t> rows;
    for (const auto& of_member : out.splits) rows.push_back(of_member[0][m]);
    std::byte* const result = out.outputs[m][0].data();
    bound.allocate = [rows, result](size_t, std::span<const int64_t> told) -> Result<std::byte*> {
      EXPECT_TRUE(std::ranges::equal(told, rows)) << "other rows were told than are sent";
      return result;
    };
  }
  return out;
}

inline double reference_scale(DType dtype, double x, Scale scale) {
  if (scale.is_identity() || dtype == DType::Bool) return x;
  const double scaled = x * scale.factor / static_cast<double>(scale.divisor);
  return row(dtype).kind == NumberKind::Float ? scaled : std::trunc(scaled);
}

inline double reference_combine(Combine op, DType dtype, double a, double b) {
  switch (op) {
    case Combine::Sum:
      return dtype == DType::Bool ? std::max(a, b) : wrapped(dtype, a + b);
    case Combine::Product:
      return wrapped(dtype, a * b);
    case Combine::Min:
      return std::min(a, b);
    case Combine::Max:
      return std::max(a, b);
  }
  return 0;
}

// Where part i of what a member gets comes from, of ops that only move: a member and a part of its input.
inline std::pair<size_t, int64_t> source_of(const TestBatch& test, size_t t, int64_t i, size_t receiver) {
  const Batch& batch = test.batch;
  const auto parts_of = [&](int64_t elements) {
    return static_cast<int64_t>(parts(batch.dtype, static_cast<size_t>(elements)));
  };
  if (batch.op == OpKind::Broadcast) return {index_of(batch, batch.root), i};
  const bool exchanges = row(batch.op).output == Output::Exchanged;
  for (size_t owner = 0;; ++owner) {
    const int64_t width = exchanges ? row_count(batch.tensors[t].shape) : 1;
    const int64_t here = parts_of(exchanges ? test.splits[owner][t][receiver] * width : count_of(batch, t, owner));
    if (i >= here) {
      i -= here;
      continue;
    }
    if (!exchanges) return {owner, i};
    const auto before = std::span(test.splits[owner][t]).first(receiver);
    return {owner, i + parts_of(sum(before) * width)};
  }
}

// Part i of what member `receiver` gets of tensor t, from what the members put in.
inline double reference_part(const TestBatch& test, size_t t, int64_t i, size_t receiver) {
  const Batch& batch = test.batch;
  const DType part = part_of(batch.dtype);
  if (!row(batch.op).reduces) {
    const auto [owner, at] = source_of(test, t, i, receiver);
    return element(part, test.originals[owner][t], at);
  }
  if (row(batch.op).output == Output::OwnRows) {
    for (size_t m = 0; m < receiver; ++m) {
      i += static_cast<int64_t>(parts(batch.dtype, static_cast<size_t>(count_of(batch, t, m))));
    }
  }
  const Reduction reduction = reduction_of(batch);
  double total = 0;
  for (size_t m = 0; m < batch.members.size(); ++m) {
    const double own = reference_scale(part, element(part, test.originals[m][t], i), reduction.pre);
    total = m == 0 ? own : reference_combine(reduction.combine, part, total, own);
  }
  return reference_scale(part, total, reduction.post);
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

inline void expect_reference_of(const TestBatch& test, size_t m) {
  const Batch& batch = test.batch;
  const DType part = part_of(batch.dtype);
  for (size_t t = 0; t < batch.tensors.size(); ++t) {
    const auto count = static_cast<int64_t>(parts(batch.dtype, static_cast<size_t>(result_count(test, t, m))));
    for (int64_t i = 0; i < count; ++i) {
      const double wanted = reference_part(test, t, i, m);
      const double got = element(part, test.result(m, t), i);
      // Assertions are too slow to be made for each element.
      if (std::abs(got - wanted) <= tolerance(part, wanted)) continue;
      FAIL() << got << " instead of " << wanted << " in batch " << batch.number << ", member " << m << ", tensor " << t
             << ", part " << i;
    }
  }
}

// Members have the reference; where all get the same, it is that of the first, and the others have the same bits.
// Inputs are as they were.
inline void expect_reference(const TestBatch& test) {
  const Output output = row(test.batch.op).output;
  const bool differs = output == Output::OwnRows || output == Output::Exchanged;
  for (size_t m = 0; m < (differs ? test.batch.members.size() : 1); ++m) {
    ASSERT_NO_FATAL_FAILURE(expect_reference_of(test, m));
  }
  if (!differs) {
    ASSERT_NO_FATAL_FAILURE(expect_members_equal(test));
  }
  if (test.in_place) return;
  ASSERT_EQ(test.inputs, test.originals) << "an input was modified";
}

// Tensors of a batch: one dimension each; where an op works on rows, those have 3 elements: of an allgather uneven
// ones, of an alltoall, which has only one tensor, those of the greatest count, kept in `number`.
inline void add_tensors(Batch& batch, std::span<const int64_t> counts, Random& random) {
  if (row(batch.op).output == Output::Exchanged) {
    const int64_t most = counts.empty() ? 0 : *std::ranges::max_element(counts);
    batch.tensors.push_back(
        {.name = "t", .number = static_cast<uint64_t>(most), .shape = Shape{0, 3}, .first_dims = {}});
    return;
  }
  for (const int64_t count : counts) {
    BatchTensor& tensor = batch.tensors.emplace_back();
    tensor.shape = Shape{count};
    if (batch.op == OpKind::Reducescatter) tensor.shape = Shape{count, 3};
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
