// SPDX-License-Identifier: Apache-2.0
#define RONDE_KERNELS kAvx512Kernels
#define RONDE_KERNELS_NAME "avx512"
#include "tensor/kernels_body.h"
