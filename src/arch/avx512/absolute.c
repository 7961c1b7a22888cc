/* SPDX-License-Identifier: MIT */
/* The kernels of absolute positions of this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_##name##_avx512
#include "../../kernels/absolute.h"
