/* SPDX-License-Identifier: MIT */
/* The kernel table of this ISA. */
#include "../../kernels.h"

POSENC_KERNELS_TABLE(neon, POSENC_ISA_NEON, &posenc_attention_kernels_neon);
