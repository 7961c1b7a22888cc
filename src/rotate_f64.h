/* SPDX-License-Identifier: MIT */
/* Rotation of F64 tensors, and what both precisions share. */
#ifndef POSENC_ROTATE_F64_H
#define POSENC_ROTATE_F64_H

#include "sides.h"

/* Tokens of one batch row, and pairs [first, first + count) of their rows. */
struct posenc_stretch {
    int64_t batch, token;
    size_t tokens, first, count;
    const void *cos, *sin; /* F32, or F64 for F64 tensors */
    ptrdiff_t row_stride;
};

/*
 * INVERSE and TRANSPOSE turn by minus the angle, which only negates the sines; INVERSE also divides
 * the attention factor out, which rows carry once and the result must lose twice: by this.
 */
static inline double posenc_turned_scale(const posenc_plan *plan, int32_t direction)
{
    const double a = plan->sets->attention_factor;
    return direction == POSENC_INVERSE ? 1 / (a * a) : 1;
}

/* The F32 row that turns the other way, by the scale above. */
static inline void posenc_turn_row(double scale, const float *cos, const float *sin, size_t count,
                                   float *new_cos, float *new_sin)
{
    for (size_t i = 0; i < count; i++) {
        new_cos[i] = (float)((double)cos[i] * scale);
        new_sin[i] = (float)((double)sin[i] * -scale);
    }
}

/* Rotates one side, which is there and not empty, by F64 rows. */
void posenc_rotate_f64(const posenc_plan *plan, int32_t direction, const struct posenc_side *side,
                       const struct posenc_stretch *stretch);

#endif
