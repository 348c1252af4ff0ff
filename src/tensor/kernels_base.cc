// SPDX-License-Identifier: Apache-2.0
#define RONDE_KERNELS kBaseKernels
#define RONDE_KERNELS_NAME "base"
#include "tensor/kernels_body.h"
