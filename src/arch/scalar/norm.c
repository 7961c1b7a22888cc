/* SPDX-License-Identifier: MIT */
/* Norms on the way to a cache in plain C: sums of squares, their roots, folded rows, products. */
#include <math.h>

#include "../../attention.h"
#include "../../fma.h"
#include "../../kernels.h"
#include "element.h"

enum { CHAINS = POSENC_ATTENTION_CHAINS };

static inline void squares(const struct posenc_squares_job *job, int from)
{
    for (size_t i = 0; job->afresh && i < (job->together ? 1 : job->heads) * CHAINS; i++)
        job->part[i] = 0;
    for (size_t h = 0; h < job->heads; h++) {
        const char *src = job->src + (ptrdiff_t)h * job->head;
        float *part = job->part + (job->together ? 0 : h * CHAINS);
        for (size_t c = 0; c < job->channels; c++) {
            float x = get(src, (ptrdiff_t)c, from), *sum = &part[(job->first + c) % CHAINS];
            *sum = posenc_fmaf(x, x, *sum);
        }
    }
}

void posenc_roots_scalar(const float *part, size_t heads, float n, float eps, float scale, float *g)
{
    for (size_t h = 0; h < heads; h++) {
        float mean = posenc_halving_tree(part + h * CHAINS) / n + eps;
        g[h] = 1.0f / sqrtf(mean) * scale;
    }
}

static void fold_SPLIT_HALF(const float *cos, const float *sin, const float *p, const float *q,
                            size_t pairs, float *c, float *s)
{
    for (size_t i = 0; i < pairs; i++) {
        c[i] = p ? cos[i] * p[i] : cos[i];
        c[pairs + i] = p ? cos[i] * q[i] : cos[i];
        s[i] = p ? sin[i] * q[i] : sin[i];
        s[pairs + i] = p ? sin[i] * p[i] : sin[i];
    }
}

static void fold_ADJACENT(const float *cos, const float *sin, const float *p, const float *q,
                          size_t pairs, float *c, float *s)
{
    (void)q;
    for (size_t i = 0; i < pairs; i++) {
        c[2 * i] = p ? cos[i] * p[2 * i] : cos[i];
        c[2 * i + 1] = p ? cos[i] * p[2 * i + 1] : cos[i];
        s[2 * i] = -(p ? sin[i] * p[2 * i + 1] : sin[i]);
        s[2 * i + 1] = p ? sin[i] * p[2 * i] : sin[i];
    }
}

static inline void rotate_head(const struct posenc_norm_job *job, const char *src, char *dst,
                               float g, int layout, int from, int to)
{
    for (size_t i = 0; i < job->count; i++) {
        const int adjacent = layout == POSENC_ADJACENT;
        size_t p = adjacent ? 2 * i : i, second = adjacent ? p + 1 : job->count + i;
        size_t q = adjacent ? p + 1 : job->partner + i;
        float a = get(src, (ptrdiff_t)p, from) * g, b = get(src, (ptrdiff_t)q, from) * g;
        float sine = adjacent ? -job->s[p] : job->s[p];
        put(dst, (ptrdiff_t)p, to, posenc_fmaf(-b, sine, a * job->c[p]));
        put(dst, (ptrdiff_t)(adjacent ? q : job->dst_partner + i), to,
            posenc_fmaf(a, job->s[second], b * job->c[second]));
    }
}

static inline void norm_rotate(const struct posenc_norm_job *job, int layout, int from, int to)
{
    for (size_t h = 0; h < job->heads; h++)
        rotate_head(job, job->src + (ptrdiff_t)h * job->src_head,
                    job->dst + (ptrdiff_t)h * job->dst_head, job->g[h], layout, from, to);
}

static inline void norm_scale(const struct posenc_norm_job *job, int from, int to)
{
    for (size_t h = 0; h < job->heads; h++) {
        const char *src = job->src + (ptrdiff_t)h * job->src_head;
        char *dst = job->dst + (ptrdiff_t)h * job->dst_head;
        for (size_t c = 0; c < job->count; c++) {
            float u = get(src, (ptrdiff_t)c, from) * job->g[h];
            put(dst, (ptrdiff_t)c, to, job->c ? u * job->c[c] : u);
        }
    }
}

void posenc_stream_scalar(const void *src, void *dst, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void posenc_stream_end_scalar(void) {}

#define KERNEL(name) posenc_##name##_scalar
#include "../../kernels/instances_norm.h"
