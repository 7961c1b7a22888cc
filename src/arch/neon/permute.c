/* SPDX-License-Identifier: MIT */
/* The kernels of this ISA that move channels between the pair layouts. */
#include "vec.h"

#define POSENC_VECTOR_BYTES 16
#define KERNEL(name) posenc_##name##_neon
#include "../../kernels/permute.h"
