/* SPDX-License-Identifier: MIT */
/* What rows of a sinusoid at integers are made from. */
#ifndef POSENC_SINUSOID_BLOCK_H
#define POSENC_SINUSOID_BLOCK_H

#include "kernels.h"

/* Positions that go out from one base row, and those of them that go out from one product. */
enum { POSENC_SINUSOID_STEPS = 64, POSENC_SINUSOID_GROUP = 32 };

/*
 * 16 pairs: their frequencies in turns, as three limbs (w[2] highest), 2 cos(w), and the rows of
 * the positions 32 j and 32 j + 1 below 64. With p >= 0, b = p - p mod 64, n = p mod 32:
 *
 *   n = 0, 1   Row(p) = Row(b) x Row(p - b), one complex product; Row(b) is Base of rows.h
 *   n > 1      Row(p) = 2 cos(w) Row(p - 1) - Row(p - 2)
 *
 * each operation rounded, no fma; Row(-p) is the conjugate. Pairs that fill up the last block have
 * frequency 0.
 */
struct posenc_sinusoid_block {
    uint32_t w[3][POSENC_ROW_BLOCK];
    double twice_cos[POSENC_ROW_BLOCK];
    double step_cos[POSENC_SINUSOID_STEPS / POSENC_SINUSOID_GROUP][2][POSENC_ROW_BLOCK];
    double step_sin[POSENC_SINUSOID_STEPS / POSENC_SINUSOID_GROUP][2][POSENC_ROW_BLOCK];
};

/* A block on its way: its base row, and within a call of the kernel the next two rows. */
struct posenc_sinusoid_state {
    double base_cos[POSENC_ROW_BLOCK], base_sin[POSENC_ROW_BLOCK];
    double cos[2][POSENC_ROW_BLOCK], sin[2][POSENC_ROW_BLOCK];
};

/* Fills a block for `count` <= 16 frequencies. */
void posenc_sinusoid_block_init(struct posenc_sinusoid_block *block, const double *inv_freq,
                                int count);

#endif
