/* SPDX-License-Identifier: MIT */
/* Short forms for making sinusoids and calling them on one batch row. */
#ifndef TEST_SINUSOID_CALL_H
#define TEST_SINUSOID_CALL_H

#include "support/test.h"

/* Parameters of a form: interleaved ones count the width, as Vaswani's do. */
static inline posenc_sinusoid_params sinusoid_params(int32_t dim, int32_t arrangement)
{
    posenc_sinusoid_params params;

    posenc_sinusoid_params_init(&params);
    params.dim = dim;
    params.arrangement = arrangement;
    return params;
}

static inline posenc_sinusoid *sinusoid_new(const posenc_sinusoid_params *params)
{
    posenc_sinusoid *made = NULL;
    posenc_error error = {0, ""};

    test_ok(posenc_sinusoid_create(&made, params, &error), &error);
    return made;
}

/* Rows of `count` real positions, [count][dim] of F32 or F64. */
static inline void sinusoid_real(const posenc_sinusoid *sinusoid, const double *steps,
                                 int64_t count, int64_t dim, int32_t dtype, void *out)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows;

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_F64;
    positions.ids = steps;
    positions.stride[1] = 1;
    posenc_tensor_contiguous(&rows, out, dtype, 1, count, 1, dim);
    test_ok(posenc_sinusoid_fill(sinusoid, &positions, &rows, &error), &error);
}

/* Rows of start, start + 1, ... */
static inline void sinusoid_run(const posenc_sinusoid *sinusoid, int64_t start, int64_t count,
                                int64_t dim, int32_t dtype, void *out)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows;

    posenc_positions_start(&positions, start);
    posenc_tensor_contiguous(&rows, out, dtype, 1, count, 1, dim);
    test_ok(posenc_sinusoid_fill(sinusoid, &positions, &rows, &error), &error);
}

#endif
