/* SPDX-License-Identifier: MIT */
/* Rows of a sinusoid in plain C: the fallback everywhere, and the oracle of the other kernels. */
#include "../../fma.h"
#include "base.h"

/* One channel of a row, for every copy. */
static void put(const struct posenc_sinusoid_job *job, size_t run, ptrdiff_t at, double value)
{
    for (size_t i = 0; i < job->copies; i++) {
        const ptrdiff_t k = (ptrdiff_t)run, m = (ptrdiff_t)i;
        float v = (float)value;
        if (job->x)
            v = posenc_fmaf(*(const float *)(const void *)(job->x + k * job->x_run +
                                                           m * job->x_copy + at),
                            job->scale, v);
        *(float *)(void *)(job->y + k * job->y_run + m * job->y_copy + at) = v;
    }
}

static void put_pair(const struct posenc_sinusoid_job *job, size_t run, size_t pair)
{
    const struct posenc_row_block *block = &job->blocks[pair / POSENC_ROW_BLOCK];
    const double step_c = block->step_cos[job->step][pair % POSENC_ROW_BLOCK];
    const double step_s = block->step_sin[job->step][pair % POSENC_ROW_BLOCK];
    const ptrdiff_t at = (ptrdiff_t)run * job->base_run + (ptrdiff_t)pair;
    const double c = job->base_cos[at], s = job->base_sin[at];
    const double cos = c * step_c - s * step_s, sin = s * step_c + c * step_s;
    const ptrdiff_t size = sizeof(float), side_by_side = job->second == 0;
    const ptrdiff_t first = (ptrdiff_t)pair * size * (1 + side_by_side);
    put(job, run, first, job->cosine_first ? cos : sin);
    put(job, run, first + (side_by_side ? size : job->second), job->cosine_first ? sin : cos);
}

void posenc_sinusoid_scalar(const struct posenc_sinusoid_job *job)
{
    for (size_t run = 0; run < job->runs; run++)
        for (size_t pair = 0; pair < job->pairs; pair++)
            put_pair(job, run, pair);
}

void posenc_sinusoid_run_scalar(const struct posenc_sinusoid_run_job *job)
{
    for (size_t i = 0; i < job->pairs; i++) {
        const struct posenc_row_block *block = &job->blocks[i / POSENC_ROW_BLOCK];
        double c, s;
        posenc_base_of(job->blocks, i, job->base, &c, &s);
        for (size_t t = 0; t < job->tokens; t++) {
            const double step_c = block->step_cos[job->step + t][i % POSENC_ROW_BLOCK];
            const double step_s = block->step_sin[job->step + t][i % POSENC_ROW_BLOCK];
            const double cos = c * step_c - s * step_s, sin = s * step_c + c * step_s;
            const ptrdiff_t k = (ptrdiff_t)t;
            const float *x = job->x ? (const void *)(job->x + k * job->x_token) : NULL;
            float *y = (void *)(job->y + k * job->y_token);
            const float first = (float)(job->cosine_first ? cos : sin);
            const float second = (float)(job->cosine_first ? sin : cos);
            y[2 * i] = x ? posenc_fmaf(x[2 * i], job->scale, first) : first;
            y[2 * i + 1] = x ? posenc_fmaf(x[2 * i + 1], job->scale, second) : second;
        }
    }
}
