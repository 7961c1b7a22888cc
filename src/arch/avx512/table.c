/* SPDX-License-Identifier: MIT */
/* The kernel table of this ISA. */
#include "../../kernels.h"

POSENC_KERNELS_TABLE(avx512, POSENC_ISA_AVX512, &posenc_attention_kernels_avx512);
