/* SPDX-License-Identifier: MIT */
/* The products of one row with a tile of rows equally apart, for this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_attention_##name##_avx2
#include "../../kernels/attention_even.h"
