// SPDX-License-Identifier: Apache-2.0
// The dtype table: one row per element type. The values are part of the C ABI and of the wire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ronde {

enum class DType : uint8_t {
  F32 = 0,
  F64 = 1,
  F16 = 2,
  BF16 = 3,
  I32 = 4,
  I64 = 5,
  U8 = 6,
  Bool = 7,
  I8 = 8,
  I16 = 9,
  U16 = 10,
  C64 = 11,
  C128 = 12
};
constexpr DType kLastDType = DType::C128;

enum class NumberKind : uint8_t { Float, Integer, Bool, Complex };

struct DTypeRow {
  DType dtype;
  std::string_view name;  // as users write it
  size_t size;            // bytes of an element
  NumberKind kind;
  DType part;  // what an element consists of: of a complex number its real and its imaginary part
};

constexpr std::array<DTypeRow, 13> kDTypes{{
    {DType::F32, "float32", 4, NumberKind::Float, DType::F32},
    {DType::F64, "float64", 8, NumberKind::Float, DType::F64},
    {DType::F16, "float16", 2, NumberKind::Float, DType::F16},
    {DType::BF16, "bfloat16", 2, NumberKind::Float, DType::BF16},
    {DType::I32, "int32", 4, NumberKind::Integer, DType::I32},
    {DType::I64, "int64", 8, NumberKind::Integer, DType::I64},
    {DType::U8, "uint8", 1, NumberKind::Integer, DType::U8},
    {DType::Bool, "bool", 1, NumberKind::Bool, DType::Bool},
    {DType::I8, "int8", 1, NumberKind::Integer, DType::I8},
    {DType::I16, "int16", 2, NumberKind::Integer, DType::I16},
    {DType::U16, "uint16", 2, NumberKind::Integer, DType::U16},
    {DType::C64, "complex64", 8, NumberKind::Complex, DType::F32},
    {DType::C128, "complex128", 16, NumberKind::Complex, DType::F64},
}};

constexpr const DTypeRow& row(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)];
}
constexpr size_t size_of(DType dtype) {
  return row(dtype).size;
}
constexpr std::string_view name_of(DType dtype) {
  return row(dtype).name;
}
constexpr DType part_of(DType dtype) {
  return row(dtype).part;
}
// Parts of `count` elements.
constexpr size_t parts(DType dtype, size_t count) {
  return count * (size_of(dtype) / size_of(part_of(dtype)));
}

}  // namespace ronde
