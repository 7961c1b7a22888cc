/* SPDX-License-Identifier: MIT */
/* The tables behind exact rows, and making rows for a stretch of tokens. */
#ifndef POSENC_ROWS_H
#define POSENC_ROWS_H

#include "angle.h"
#include "kernels.h"
#include "positions.h"

/*
 * 16 pairs: their frequencies in turns, as three limbs (w[2] highest), and the rows of positions
 * 0..15. Row(p) = Row(p - p mod 16) x step[p mod 16], one complex product. Pairs that fill up the
 * last block have frequency 0.
 */
struct posenc_row_block {
    uint32_t w[3][POSENC_ROW_BLOCK];
    double step_cos[POSENC_ROW_STEPS][POSENC_ROW_BLOCK];
    double step_sin[POSENC_ROW_STEPS][POSENC_ROW_BLOCK];
};

/* Stores the frequency of pair i of a block, in turns, and returns it. */
static inline struct posenc_turns posenc_put_turns(uint32_t w[3][POSENC_ROW_BLOCK], int i,
                                                   double inv_freq)
{
    const struct posenc_turns turns = posenc_turns_of(inv_freq);
    w[2][i] = (uint32_t)(turns.high >> 32);
    w[1][i] = (uint32_t)turns.high;
    w[0][i] = turns.low;
    return turns;
}

/* Fills a block for `count` <= 16 frequencies. */
void posenc_row_block_init(struct posenc_row_block *block, const double *inv_freq, int count);

/* The same with the steps alone whose bits are set: for a block that few tokens read. */
void posenc_row_block_part(struct posenc_row_block *block, const double *inv_freq, int count,
                           unsigned steps);

/* What to fill: tokens [token, token + tokens) of a batch row. */
struct posenc_rows_span {
    const posenc_plan *plan;
    const posenc_positions *positions;
    int64_t batch, token;
    size_t tokens;
};

/* Where: pairs [first, first + count), of F32 or F64 elements. */
struct posenc_rows_target {
    void *cos, *sin;
    int32_t dtype;
    ptrdiff_t stride; /* elements from token to token */
    size_t first, count;
    int delta; /* 1: of differences of positions, F32: see posenc_rows_delta */
};

/* Writes rows: cosines to cos[t*stride + i], sines to sin[t*stride + i], i < count. `first` is a
 * multiple of 16, the positions are a copy that posenc_positions_check made. */
void posenc_rows_fill(const struct posenc_rows_span *span, const struct posenc_rows_target *to);

/*
 * Rows by which a key that was rotated at p comes to stand at p + d: `positions` are the d. Exact
 * rows of the plan's frequencies whatever its recipe, without the attention factor, with the decay
 * of xPos for d alone (as if its centre were 0). Not for tables.
 */
void posenc_rows_delta(const struct posenc_rows_span *span, const struct posenc_rows_target *to);

/* Fails if the plan's recipe has no rows of F64; `name` is the argument that asks for them. */
int32_t posenc_wide_rows_check(const posenc_plan *plan, const char *name, posenc_error *error);

/* The rest is between the files that make rows. */

/* The set of frequencies of token t; -1 stands for dynamic ones of their own. */
int32_t posenc_rows_set(const struct posenc_rows_span *span, size_t t);

void posenc_rows_exact(const struct posenc_rows_span *span, const struct posenc_rows_target *to);
void posenc_rows_wide(const struct posenc_rows_span *span, const struct posenc_rows_target *to);
void posenc_rows_hf_f32(const struct posenc_rows_span *span, const struct posenc_rows_target *to);
void posenc_rows_ggml(const struct posenc_rows_span *span, const struct posenc_rows_target *to);

#endif
