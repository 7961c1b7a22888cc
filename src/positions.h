/* SPDX-License-Identifier: MIT */
/* Reading and checking the positions of a step. */
#ifndef POSENC_POSITIONS_H
#define POSENC_POSITIONS_H

#include "common.h"
#include "tensor.h"

/* The lowest and highest position that a plan accepts. Real positions lie below high + 1. */
struct posenc_range {
    int64_t low, high;
    const char *why; /* what sets the range, for the text */
};

/*
 * Copies the caller's struct, of any known size, and checks it and all that batch x tokens will
 * read through it against the plan. In the copy, what the plan does not depend on is 0 or NULL:
 * axis_stride where ids have one axis, lengths, sets.
 */
int32_t posenc_positions_check(posenc_positions *copy, const posenc_positions *positions,
                               const posenc_plan *plan, int64_t batch, int64_t tokens,
                               posenc_error *error);

/* The same for differences of positions, which the limits of a plan do not concern. */
int32_t posenc_deltas_check(posenc_positions *copy, const posenc_positions *deltas,
                            const posenc_plan *plan, int64_t batch, int64_t tokens,
                            posenc_error *error);

/* The rest is for copies that have passed. */

/* Fails with POSENC_ERROR_OVERLAP if ids, lengths or sets lie in memory that the call writes: later
 * ones would be read after they were overwritten. */
int32_t posenc_positions_apart(const posenc_positions *positions, int64_t batch, int64_t tokens,
                               const struct posenc_view *out, posenc_error *error);

/* Element i of integer ids. */
static inline int64_t posenc_id(const posenc_positions *positions, int64_t i)
{
    return positions->dtype == POSENC_I64 ? ((const int64_t *)positions->ids)[i]
                                          : ((const int32_t *)positions->ids)[i];
}

/* Where the id of an axis, batch row and token lies. */
static inline int64_t posenc_id_at(const posenc_positions *positions, int axis, int64_t b,
                                   int64_t t)
{
    return axis * positions->axis_stride + b * positions->stride[0] + t * positions->stride[1];
}

/* Ids of F64 are for posenc_real_position. */
static inline int posenc_positions_are_real(const posenc_positions *positions)
{
    return positions->kind == POSENC_POSITIONS_IDS && positions->dtype == POSENC_F64;
}

static inline int64_t posenc_position(const posenc_positions *positions, int axis, int64_t b,
                                      int64_t t)
{
    switch (positions->kind) {
    case POSENC_POSITIONS_STARTS:
        return posenc_id(positions, b * positions->stride[0]) + t;
    case POSENC_POSITIONS_IDS:
        return posenc_id(positions, posenc_id_at(positions, axis, b, t));
    default:
        return positions->start + t;
    }
}

/* Positions of any type: integers are exact in a double. Subnormal ones count as 0, as they do
 * where the caller has the CPU flush them, so that this does not change bits. */
static inline double posenc_real_position(const posenc_positions *positions, int axis, int64_t b,
                                          int64_t t)
{
    if (!posenc_positions_are_real(positions))
        return (double)posenc_position(positions, axis, b, t);
    double x = ((const double *)positions->ids)[posenc_id_at(positions, axis, b, t)];
    return x > -0x1p-1022 && x < 0x1p-1022 ? 0 : x;
}

static inline int64_t posenc_length(const posenc_positions *positions, int64_t b)
{
    return positions->lengths ? positions->lengths[b] : positions->length;
}

/* Which factor of LINEAR turns a token. */
static inline int32_t posenc_set(const posenc_positions *positions, int64_t b, int64_t t)
{
    const int64_t *stride = positions->set_stride;
    return positions->sets ? positions->sets[b * stride[0] + t * stride[1]] : 0;
}

#endif
