/* SPDX-License-Identifier: MIT */
/* The kernels of this ISA that rotate from one pair layout into the other. */
#include "vec.h"

#define KERNEL(name) posenc_##name##_avx512
#include "../../kernels/rotate_across.h"
