/* SPDX-License-Identifier: MIT */
/* The kernels of this ISA that move channels between the pair layouts. */
#include "vec.h"

#define POSENC_VECTOR_BYTES 32
#define KERNEL(name) posenc_##name##_avx2
#include "../../kernels/permute.h"
