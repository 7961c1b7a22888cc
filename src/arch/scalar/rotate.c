/* SPDX-License-Identifier: MIT */
/* Rotation and conversion in plain C: the fallback everywhere, and the oracle of all others. */
#include "../../fma.h"
#include "../../kernels.h"
#include "element.h"

/* The channels of pair i in a layout. */
struct pair {
    ptrdiff_t p, q;
};

static inline struct pair pair_at(const struct posenc_rotate_job *job, size_t i, int layout)
{
    ptrdiff_t p = (ptrdiff_t)(layout == POSENC_ADJACENT ? 2 * i : i);
    return (struct pair){p, p + (layout == POSENC_ADJACENT ? 1 : (ptrdiff_t)job->partner)};
}

static inline void rotate_head(const struct posenc_rotate_job *job, const float *cos,
                               const float *sin, const char *src, char *dst, int layout,
                               int out_layout, int from, int to)
{
    for (size_t i = 0; i < job->pairs; i++) {
        struct pair in = pair_at(job, i, layout), out = pair_at(job, i, out_layout);
        float a = get(src, in.p, from), b = get(src, in.q, from);
        put(dst, out.p, to, posenc_fmaf(-b, sin[i], a * cos[i]));
        put(dst, out.q, to, posenc_fmaf(a, sin[i], b * cos[i]));
    }
}

static inline void rotate(const struct posenc_rotate_job *job, int layout, int out_layout, int from,
                          int to)
{
    for (int n = 0; n < job->sides; n++) {
        const struct posenc_rotate_side *s = &job->side[n];
        const float *cos = job->cos, *sin = job->sin;
        const char *src = s->src;
        char *dst = s->dst;
        for (size_t left = job->tokens;;) {
            for (ptrdiff_t h = 0; h < (ptrdiff_t)s->heads; h++)
                rotate_head(job, cos, sin, src + h * s->src_head, dst + h * s->dst_head, layout,
                            out_layout, from, to);
            if (!--left)
                break;
            cos += job->row_stride;
            sin += job->row_stride;
            src += s->src_token;
            dst += s->dst_token;
        }
    }
}

#define ROTATE(layout, from, to)                                                               \
    static void rotate_##layout##_##from##_##to(struct posenc_rotate_job *job)                 \
    {                                                                                          \
        rotate(job, POSENC_##layout, POSENC_##layout, POSENC_##from, POSENC_##to);             \
    }
#define ACROSS(layout, from, to)                                                               \
    static void across_##layout##_##from##_##to(struct posenc_rotate_job *job)                 \
    {                                                                                          \
        rotate(job, POSENC_##layout, OTHER(POSENC_##layout), POSENC_##from, POSENC_##to);      \
    }
#define OTHER(layout) (POSENC_ADJACENT + POSENC_SPLIT_HALF - (layout))
#define CONVERT(from, to)                                                                      \
    static void convert_##from##_##to(const void *src, void *dst, size_t count)                \
    {                                                                                          \
        for (size_t i = 0; i < count; i++)                                                     \
            put(dst, (ptrdiff_t)i, POSENC_##to, get(src, (ptrdiff_t)i, POSENC_##from));        \
    }

#define KERNEL(name) posenc_##name##_scalar
#include "../../kernels/instances.h"
#include "../../kernels/instances_across.h"
