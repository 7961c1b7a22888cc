/* SPDX-License-Identifier: MIT */
/* The attention kernel of this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_##name##_avx2
#include "../../kernels/attention.h"
