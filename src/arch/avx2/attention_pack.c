/* SPDX-License-Identifier: MIT */
/* Tiles widened and packed for the block kernels, for this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_attention_##name##_avx2
#include "../../kernels/attention_pack.h"
