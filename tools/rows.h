/* SPDX-License-Identifier: MIT */
/* posenc rows: rows of a plan or a sinusoid at given positions, made and printed piece by piece. */
#ifndef POSENC_TOOL_ROWS_H
#define POSENC_TOOL_ROWS_H

#include "npy.h"
#include "tool.h"

#include <posenc/absolute.h>

enum rows_format { ROWS_TEXT = 1, ROWS_CSV, ROWS_NPY };

struct rows_job {
    const posenc_plan *plan;         /* one of these two, */
    const posenc_sinusoid *sinusoid; /* the other NULL */
    int32_t width;                   /* of a row */
    posenc_positions positions;
    int64_t batch, tokens;
    int has_batch; /* 1: the output has a dimension for batch rows */
    int32_t dtype; /* POSENC_F32 or POSENC_F64 */
    const char *subject; /* for refusals */
};

/* Refuses what the library refuses of these positions, before anything is written. */
int rows_check(const struct rows_job *job);

int rows_write(const struct rows_job *job, enum rows_format format, struct tool_output *output);

#endif
