// SPDX-License-Identifier: Apache-2.0
// The arithmetic on elements: combine, scale, divide. One source (kernels_body.h) compiled per instruction set, chosen
// once by cpuid. Results are the same, bit for bit, on every instruction set; only which of two NaN survives is not
// promised.
//
// Halves (F16, BF16) are widened to float32, computed there, and rounded once, to nearest even, when stored; NaN stays
// NaN. Integers: Sum and Product wrap. Bool (one byte, 0 or 1): Min and Product are "and", Max and Sum are "or".
// Complex numbers: Sum only; they are scaled by real factors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace ronde {

enum class Combine : uint8_t { Sum, Min, Max, Product };

// What happens to an element after it was combined, or before it is sent: x * factor / divisor.
// Floats: one multiplication by factor/divisor (float32 for F32 and halves, double for F64).
// Integers: if factor is 1 the exact x is divided, toward zero; else x * factor / divisor in double (I64: long double),
// toward zero, saturating. Bool: unchanged.
struct Scale {
  double factor = 1.0;
  int64_t divisor = 1;
  bool is_identity() const { return factor == 1.0 && divisor == 1; }
};

// out[i] = scale(srcs[0][i] op srcs[1][i] op ...), in the order of srcs. `out` may be one of the srcs.
// count elements each; srcs is not empty. Min and Max of floats: a NaN on any side gives NaN.
void combine(Combine op, DType dtype, void* out, std::span<const void* const> srcs, size_t count, Scale scale = {});

// out[i] = scale(in[i]). In place (out == in) is allowed, other overlap is not. With the identity: a copy.
void scale_copy(DType dtype, void* out, const void* in, size_t count, Scale scale);

// Conversion between F32, F16 and BF16, to nearest even.
void convert(DType out_dtype, void* out, DType in_dtype, const void* in, size_t count);

// The instruction sets that this processor and build have, best last ("base", "avx2", "avx512"), and a way for tests to
// force one. Not for use while another thread computes.
std::span<const char* const> kernel_sets();
void use_kernel_set(const char* name);

}  // namespace ronde
