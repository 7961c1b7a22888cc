/* SPDX-License-Identifier: MIT */
/* Base rows in plain C. */
#ifndef POSENC_SCALAR_BASE_H
#define POSENC_SCALAR_BASE_H

#include "../../angle.h"
#include "../../rows.h"

/* Cosine and sine of pair i at the base position. */
static inline void posenc_base_of(const struct posenc_row_block *blocks, size_t i,
                                  uint32_t position, double *c, double *s)
{
    const struct posenc_row_block *block = &blocks[i / POSENC_ROW_BLOCK];
    const size_t j = i % POSENC_ROW_BLOCK;
    struct posenc_turns w = {(uint64_t)block->w[2][j] << 32 | block->w[1][j], block->w[0][j]};
    posenc_sincos(posenc_turns_times(w, position), s, c);
}

#endif
