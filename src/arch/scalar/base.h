/* SPDX-License-Identifier: MIT */
/* Base rows in plain C. */
#ifndef POSENC_SCALAR_BASE_H
#define POSENC_SCALAR_BASE_H

#include "../../angle.h"
#include "../../rows.h"

/* Cosine and sine at the base position of pair i of a block with the frequencies w. */
static inline void posenc_base_of(const uint32_t w[3][POSENC_ROW_BLOCK], size_t i,
                                  uint32_t position, double *c, double *s)
{
    struct posenc_turns turns = {(uint64_t)w[2][i] << 32 | w[1][i], w[0][i]};
    posenc_sincos(posenc_turns_times(turns, position), s, c);
}

#endif
