/* SPDX-License-Identifier: MIT */
/* Q and K of one rotation: their checks, alone and against each other. */
#ifndef POSENC_SIDES_H
#define POSENC_SIDES_H

#include "plan.h"
#include "tensor.h"

/* One of Q and K. `in` is NULL where it is absent; `out` equals `in` where it is in place. */
struct posenc_side {
    const posenc_tensor *in, *out;
    struct posenc_view in_view, out_view;
};

/* The tensors of a call as the caller gave them; each may be NULL. */
struct posenc_tensors {
    const posenc_tensor *q, *q_out, *k, *k_out;
};

/* Checks plan, direction and tensors and describes Q in side[0], K in side[1]. At least one is
 * there. */
int32_t posenc_sides_check(const posenc_plan *plan, int32_t direction,
                           const struct posenc_tensors *tensors, struct posenc_side side[2],
                           posenc_error *error);

/* Checks a direction alone: what INVERSE divides out must be one factor, the same for every row. */
int32_t posenc_direction_check(const posenc_plan *plan, int32_t direction, posenc_error *error);

/* The rest is for sides that have passed. */

/* 1 if the tensors of the call are F64: all are, or none. */
static inline int posenc_sides_are_wide(const struct posenc_side side[2])
{
    return (side[0].in ? side[0].in : side[1].in)->dtype == POSENC_F64;
}

/* The first channel of the window, which may stand alone in the tensor. */
static inline int64_t posenc_window(const posenc_plan *plan, const posenc_tensor *t)
{
    return t->shape[3] == plan->rotary_dim ? 0 : plan->rotary_offset;
}

#endif
