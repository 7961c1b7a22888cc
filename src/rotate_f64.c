/* SPDX-License-Identifier: MIT */
/* Rotation of F64 tensors: for training code and oracles, one plain loop on every ISA. */
#include "rotate_f64.h"

#include <math.h>

/* The channels of a pair in a layout. */
struct pair {
    int64_t p, q;
};

static struct pair pair_at(const posenc_plan *plan, int32_t layout, int64_t i)
{
    return layout == POSENC_ADJACENT ? (struct pair){2 * i, 2 * i + 1}
                                     : (struct pair){i, i + plan->pairs};
}

/* Two channels to turn, by one cosine and sine. */
static void rotate_pair(const double *src, double *dst, struct pair in, struct pair out, double c,
                        double s)
{
    const double a = src[in.p], b = src[in.q];
    dst[out.p] = fma(-b, s, a * c);
    dst[out.q] = fma(a, s, b * c);
}

void posenc_rotate_f64(const posenc_plan *plan, int32_t direction, const struct posenc_side *side,
                       const struct posenc_stretch *w)
{
    const double scale = posenc_turned_scale(plan, direction);
    const double sign = direction == POSENC_FORWARD ? 1 : -1;
    const int64_t window = posenc_window(plan, side->in);
    for (size_t t = 0; t < w->tokens; t++) {
        const double *cos = (const double *)w->cos + (ptrdiff_t)t * w->row_stride;
        const double *sin = (const double *)w->sin + (ptrdiff_t)t * w->row_stride;
        const int64_t token = w->token + (int64_t)t;
        for (int64_t h = 0; h < side->in->shape[2]; h++) {
            const double *src = (void *)posenc_element(side->in, w->batch, token, h, window);
            double *dst = (void *)posenc_element(side->out, w->batch, token, h, window);
            for (size_t i = 0; i < w->count; i++) {
                const int64_t pair = (int64_t)(w->first + i);
                rotate_pair(src, dst, pair_at(plan, plan->layout, pair),
                            pair_at(plan, plan->out_layout, pair), cos[i] * scale,
                            sign * sin[i] * scale);
            }
        }
    }
}
