/* SPDX-License-Identifier: MIT */
/* The kernel table of this ISA. */
#include "../../kernels.h"

POSENC_KERNELS_TABLE(avx2, POSENC_ISA_AVX2, &posenc_attention_kernels_avx2);
