/* SPDX-License-Identifier: MIT */
/* The attention kernels of this ISA that work tile by tile. */
#include "../../attention_kernels.h"

POSENC_ATTENTION_TABLE(neon, NULL);
