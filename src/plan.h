/* SPDX-License-Identifier: MIT */
/* The inside of a plan: what rows and rotation need, made once, never changed. */
#ifndef POSENC_PLAN_H
#define POSENC_PLAN_H

#include "positions.h"
#include "rows.h"

/* How rows come about. */
enum { POSENC_ROWS_EXACT, POSENC_ROWS_HF_F32, POSENC_ROWS_TABLE };

struct posenc_plan {
    const struct posenc_kernels *kernels;
    int32_t layout, head_dim, rotary_dim, rotary_offset, pairs;
    int32_t rows_by;   /* POSENC_ROWS_* */
    int32_t row_dtype; /* HF_F32: what the values are rounded to */
    double attention_factor;
    struct posenc_range range;       /* of positions */
    double *inv_freq;                /* [pairs], NULL for tables */
    float *inv_freq_f32;             /* [pairs], HF_F32 */
    struct posenc_row_block *blocks; /* [ceil(pairs / 16)], EXACT */
    const float *cos_table, *sin_table;
};

#endif
