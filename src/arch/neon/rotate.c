/* SPDX-License-Identifier: MIT */
/* The rotation and conversion kernels of this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_##name##_neon
#include "../../kernels/rotate.h"
