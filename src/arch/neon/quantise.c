/* SPDX-License-Identifier: MIT */
/* The kernels of I8 of this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_##name##_neon
#include "../../kernels/quantise.h"
