/* SPDX-License-Identifier: MIT */
/* The row kernel of this ISA. */
#include "vecd.h"

#define KERNEL(name) posenc_##name##_avx2
#include "../../kernels/rows.h"
