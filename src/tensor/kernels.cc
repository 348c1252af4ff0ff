// SPDX-License-Identifier: Apache-2.0
// The choice of the instruction set, and what does not depend on it.
#include "tensor/kernels.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tensor/kernel_table.h"

namespace ronde {
namespace {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

// What this processor can run, best last.
const std::vector<const KernelTable*>& tables() {
  static const auto kTables = [] {
    std::vector<const KernelTable*> out{&kBaseKernels};
    if (has_avx2()) out.push_back(&kAvx2Kernels);
    if (has_avx512()) out.push_back(&kAvx512Kernels);
    return out;
  }();
  return kTables;
}

// The one in use. Written by tests only, see use_kernel_set.
const KernelTable*& table() {
  static const KernelTable* chosen = tables().back();
  return chosen;
}

bool converts(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

void copy(DType dtype, void* out, const void* in, size_t count) {
  if (out != in && count > 0) std::memcpy(out, in, count * size_of(dtype));
}

}  // namespace

void combine(Combine op, DType dtype, void* out, std::span<const void* const> srcs, size_t count, Scale scale) {
  RONDE_CHECK(!srcs.empty(), "nothing to combine");
  RONDE_CHECK(scale.divisor > 0, "a divisor is a number of ranks");
  if (row(dtype).kind == NumberKind::Complex) {
    RONDE_CHECK(op == Combine::Sum, "complex numbers are only added");
    return combine(op, part_of(dtype), out, srcs, parts(dtype, count), scale);
  }
  if (srcs.size() > 1) return table()->combine(op, dtype, out, srcs.data(), srcs.size(), count, scale);
  if (dtype != DType::Bool) return scale_copy(dtype, out, srcs[0], count, scale);
  const void* const twice[] = {srcs[0], srcs[0]};  // x or x: any true byte becomes 1
  table()->combine(Combine::Max, dtype, out, twice, 2, count, scale);
}

void scale_copy(DType dtype, void* out, const void* in, size_t count, Scale scale) {
  RONDE_CHECK(scale.divisor > 0, "a divisor is a number of ranks");
  if (scale.is_identity() || dtype == DType::Bool) return copy(dtype, out, in, count);
  table()->scale(part_of(dtype), out, in, parts(dtype, count), scale);
}

void convert(DType out_dtype, void* out, DType in_dtype, const void* in, size_t count) {
  RONDE_CHECK(converts(out_dtype) && converts(in_dtype), "only float32, float16 and bfloat16 are converted");
  if (out_dtype == in_dtype) return copy(in_dtype, out, in, count);
  table()->convert(out_dtype, out, in_dtype, in, count);
}

std::span<const char* const> kernel_sets() {
  static const auto kNames = [] {
    std::vector<const char*> out;
    for (const KernelTable* each : tables()) out.push_back(each->name);
    return out;
  }();
  return kNames;
}

void use_kernel_set(const char* name) {
  const auto found = std::ranges::find_if(tables(), [&](auto* each) { return std::string_view(each->name) == name; });
  RONDE_CHECK(found != tables().end(), "no such kernel set here");
  table() = *found;
}

}  // namespace ronde
