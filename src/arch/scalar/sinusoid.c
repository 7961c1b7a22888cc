/* SPDX-License-Identifier: MIT */
/* Rows of a sinusoid in plain C: the fallback everywhere, and the oracle of the other kernels. */
#include "../../fma.h"
#include "../../sinusoid_block.h"
#include "base.h"

void posenc_sinusoid_base_scalar(const struct posenc_sinusoid_block *blocks, size_t count,
                                 uint32_t position, struct posenc_sinusoid_state *state)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < POSENC_ROW_BLOCK; j++)
            posenc_base_of(blocks[i].w, j, position, &state[i].base_cos[j], &state[i].base_sin[j]);
}

/* Row n of a group that begins with the rows a and b. */
static double row_of(double twice_cos, double a, double b, size_t n)
{
    for (; n; n--) {
        const double next = twice_cos * b - a;
        a = b;
        b = next;
    }
    return a;
}

/* Pair j of a block at base + step. */
static void make_pair(const struct posenc_sinusoid_block *block,
                      const struct posenc_sinusoid_state *state, size_t step, size_t j, double *cos,
                      double *sin)
{
    const size_t group = step / POSENC_SINUSOID_GROUP, n = step % POSENC_SINUSOID_GROUP;
    const double c = state->base_cos[j], s = state->base_sin[j];
    double row_c[2], row_s[2];
    for (int i = 0; i < 2; i++) {
        const double step_c = block->step_cos[group][i][j], step_s = block->step_sin[group][i][j];
        row_c[i] = c * step_c - s * step_s;
        row_s[i] = s * step_c + c * step_s;
    }
    *cos = row_of(block->twice_cos[j], row_c[0], row_c[1], n);
    *sin = row_of(block->twice_cos[j], row_s[0], row_s[1], n);
}

static void put(const struct posenc_sinusoid_job *job, size_t t, ptrdiff_t at, double value)
{
    const ptrdiff_t k = (ptrdiff_t)t;
    float v = (float)value;
    if (job->x)
        v = posenc_fmaf(*(const float *)(const void *)(job->x + k * job->x_token + at), job->scale,
                        v);
    *(float *)(void *)(job->y + k * job->y_token + at) = v;
}

static void put_pair(const struct posenc_sinusoid_job *job, size_t t, size_t i, size_t j)
{
    const ptrdiff_t size = sizeof(float), side_by_side = job->second == 0;
    const ptrdiff_t first = (ptrdiff_t)(i * POSENC_ROW_BLOCK + j) * size * (1 + side_by_side);
    double cos, sin;
    make_pair(&job->blocks[i], &job->state[i], job->step + t, j, &cos, &sin);
    put(job, t, first, job->cosine_first ? cos : sin);
    put(job, t, first + (side_by_side ? size : job->second), job->cosine_first ? sin : cos);
}

void posenc_sinusoid_scalar(const struct posenc_sinusoid_job *job)
{
    for (size_t t = 0; t < job->tokens; t++)
        for (size_t i = 0; i < job->count; i++)
            for (size_t j = 0; j < POSENC_ROW_BLOCK; j++)
                put_pair(job, t, i, j);
}
