// SPDX-License-Identifier: Apache-2.0
#define RONDE_KERNELS kAvx2Kernels
#define RONDE_KERNELS_NAME "avx2"
#include "tensor/kernels_body.h"
