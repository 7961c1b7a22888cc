/* SPDX-License-Identifier: MIT */
/* The norm and streaming kernels of this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_##name##_avx512
#include "../../kernels/norm.h"
