/* SPDX-License-Identifier: MIT */
/* Reading and checking the positions of a step. */
#ifndef POSENC_POSITIONS_H
#define POSENC_POSITIONS_H

#include "common.h"
#include "tensor.h"

/* The lowest and highest position that a plan accepts. */
struct posenc_range {
    int64_t low, high;
    const char *why; /* what sets the range, for the text */
};

/* Checks the struct and every position that batch x tokens will read. */
int32_t posenc_positions_check(const posenc_positions *positions, int64_t batch, int64_t tokens,
                               const struct posenc_range *range, posenc_error *error);

/* Fails with POSENC_ERROR_OVERLAP if ids that have passed the check lie in memory that the call
 * writes: later ids would be read after they were overwritten. */
int32_t posenc_positions_apart(const posenc_positions *positions, int64_t batch, int64_t tokens,
                               const struct posenc_view *out, posenc_error *error);

/* Element i of ids. */
static inline int64_t posenc_id(const posenc_positions *positions, int64_t i)
{
    return positions->dtype == POSENC_I64 ? ((const int64_t *)positions->ids)[i]
                                          : ((const int32_t *)positions->ids)[i];
}

static inline int64_t posenc_position(const posenc_positions *positions, int64_t b, int64_t t)
{
    switch (positions->kind) {
    case POSENC_POSITIONS_STARTS:
        return posenc_id(positions, b * positions->stride[0]) + t;
    case POSENC_POSITIONS_IDS:
        return posenc_id(positions, b * positions->stride[0] + t * positions->stride[1]);
    default:
        return positions->start + t;
    }
}

#endif
