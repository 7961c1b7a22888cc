/* SPDX-License-Identifier: MIT */
/* The kernels of absolute positions of this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_##name##_avx2
#include "../../kernels/absolute.h"
