/* SPDX-License-Identifier: MIT */
/* The kernels of biases of this ISA. */
#include "../../kernels.h"
#include "vecd.h"

#define KERNEL(name) posenc_##name##_avx512
#include "../../kernels/bias.h"
