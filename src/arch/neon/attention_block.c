/* SPDX-License-Identifier: MIT */
/* The products of blocks of rows with a tile, for this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_attention_##name##_neon
#include "../../kernels/attention_block.h"
