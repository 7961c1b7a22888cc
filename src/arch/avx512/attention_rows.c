/* SPDX-License-Identifier: MIT */
/* What happens to single rows of attention, for this ISA. */
#include "vec.h"

#define KERNEL(name) posenc_attention_##name##_avx512
#include "../../kernels/attention_rows.h"
