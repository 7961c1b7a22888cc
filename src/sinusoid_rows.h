/* SPDX-License-Identifier: MIT */
/* Rows of a sinusoid for a stretch of tokens: positions staged once, then any of its pairs. */
#ifndef POSENC_SINUSOID_ROWS_H
#define POSENC_SINUSOID_ROWS_H

#include "sinusoid.h"

enum { POSENC_STRETCH = 64 }; /* tokens that are staged together */

/* Neighbouring tokens whose rows come in one go: their p have one sign and one |p| - |p| mod 64,
 * and their |p| go up (direction 1), down (-1) or stay (0). Or their positions are no integers. */
struct posenc_run {
    uint8_t first, count;
    uint8_t step; /* the least |p| mod 64 */
    int8_t direction;
    uint8_t real, negative;
    uint32_t base;
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
    size_t runs;
    struct posenc_run run[POSENC_STRETCH];
};

/* Stages `tokens` tokens from batch, token on, which the caller has set. */
void posenc_sinusoid_stage(struct posenc_sinusoid_stretch *stretch,
                           const posenc_sinusoid *sinusoid, const posenc_positions *positions,
                           int axis);

/* 1 if token t stands at the padding row. */
int posenc_sinusoid_is_padding(const struct posenc_sinusoid_stretch *stretch, size_t t,
                               int64_t padding);

/* Writes rows of F64, or of real positions, of the tokens [first, first + tokens): those of a plan,
 * and those of the padding row as zeros. */
void posenc_sinusoid_rows(const posenc_sinusoid *sinusoid, const struct posenc_sinusoid_axis *axis,
                          const struct posenc_sinusoid_stretch *stretch, size_t first,
                          size_t tokens, const struct posenc_rows_target *to);

#endif
