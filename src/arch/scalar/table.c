/* SPDX-License-Identifier: MIT */
/* The kernel table of plain C: the fallback everywhere, and the oracle of the others. */
#include "../../kernels.h"

POSENC_KERNELS_TABLE(scalar, POSENC_ISA_SCALAR, NULL);
