// SPDX-License-Identifier: Apache-2.0
// KernelTable: the arithmetic of kernels.h as compiled for one instruction set.
//
// kernels_SET.cc includes kernels_body.h under the flags of its set. Nothing with external linkage but its table may
// come out of such a file: an inline function of a shared header that was compiled there could be the copy that the
// linker keeps, and would then run on processors without the set. So kernels_body.h calls nothing that is not its own,
// an intrinsic, or the C library.
#pragma once

#include <cstddef>

#include "tensor/kernels.h"

namespace ronde {

struct KernelTable {
  const char* name;
  // As in kernels.h, for at least two sources. No function of the table is called for complex numbers, only for their
  // parts.
  void (*combine)(Combine op, DType dtype, void* out, const void* const* srcs, size_t sources, size_t count,
                  const Scale& scale);
  // As in kernels.h, for a scale that is not the identity and a dtype other than Bool.
  void (*scale)(DType dtype, void* out, const void* in, size_t count, const Scale& scale);
  // Between F32, F16 and BF16, for two different ones.
  void (*convert)(DType out_dtype, void* out, DType in_dtype, const void* in, size_t count);
};

extern const KernelTable kBaseKernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;

}  // namespace ronde
