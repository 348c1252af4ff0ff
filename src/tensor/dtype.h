// SPDX-License-Identifier: Apache-2.0
// The dtype table: one row per element type. The values are part of the C ABI and of the wire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ronde {

enum class DType : uint8_t { F32 = 0, F64 = 1, F16 = 2, BF16 = 3, I32 = 4, I64 = 5, U8 = 6, Bool = 7 };
constexpr DType kLastDType = DType::Bool;

struct DTypeRow {
  DType dtype;
  std::string_view name;  // as users write it
  size_t size;            // bytes of an element
  bool is_float;
};

constexpr std::array<DTypeRow, 8> kDTypes{{
    {DType::F32, "float32", 4, true},
    {DType::F64, "float64", 8, true},
    {DType::F16, "float16", 2, true},
    {DType::BF16, "bfloat16", 2, true},
    {DType::I32, "int32", 4, false},
    {DType::I64, "int64", 8, false},
    {DType::U8, "uint8", 1, false},
    {DType::Bool, "bool", 1, false},
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

}  // namespace ronde
