/* SPDX-License-Identifier: MIT */
/* The products of few rows with a tile as it lies, for this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_attention_##name##_avx2
#include "../../kernels/attention_direct.h"
