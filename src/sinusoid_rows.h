/* SPDX-License-Identifier: MIT */
/* Rows of a sinusoid for a stretch of tokens: positions staged once, then any of its pairs. */
#ifndef POSENC_SINUSOID_ROWS_H
#define POSENC_SINUSOID_ROWS_H

#include "sinusoid.h"

enum { POSENC_STRETCH = 64 }; /* tokens that are staged together */

/* Neighbouring tokens that share sign and |p| - |p| mod 16: what a kernel takes in one call. */
struct posenc_run {
    uint8_t first, count;
    uint32_t base;
    uint64_t sine_sign;
};

/* Tokens of one batch row, with the positions + offset of one axis as ids of their own. */
struct posenc_sinusoid_stretch {
    int64_t batch, token;
    size_t tokens;
    posenc_positions positions;
    union {
        int64_t whole[POSENC_STRETCH];
        double real[POSENC_STRETCH];
    } ids;
    size_t runs; /* 0 where positions are real */
    struct posenc_run run[POSENC_STRETCH];
    uint8_t steps[POSENC_STRETCH];
};

/* Stages `tokens` tokens from batch, token on, which the caller has set. */
void posenc_sinusoid_stage(struct posenc_sinusoid_stretch *stretch,
                           const posenc_sinusoid *sinusoid, const posenc_positions *positions,
                           int axis);

/* Writes the rows of the stretch, those of the padding row as zeros. */
void posenc_sinusoid_rows(const posenc_sinusoid *sinusoid, const struct posenc_sinusoid_axis *axis,
                          const struct posenc_sinusoid_stretch *stretch,
                          const struct posenc_rows_target *to);

#endif
