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

/* The first two rows of a group. */
static void start(const struct posenc_sinusoid_block *block,
                  const struct posenc_sinusoid_state *state, size_t group, size_t j, double cos[2],
                  double sin[2])
{
    const double c = state->base_cos[j], s = state->base_sin[j];
    for (int i = 0; i < 2; i++) {
        const double step_c = block->step_cos[group][i][j], step_s = block->step_sin[group][i][j];
        cos[i] = c * step_c - s * step_s;
        sin[i] = s * step_c + c * step_s;
    }
}

static void turn_on(double twice_cos, double row[2])
{
    const double next = twice_cos * row[1] - row[0];
    row[0] = row[1];
    row[1] = next;
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

/* Both channels of pair j of block i. */
static void put_pair(const struct posenc_sinusoid_job *job, size_t t, size_t i, size_t j,
                     double cos, double sin)
{
    const ptrdiff_t size = sizeof(float), side_by_side = job->second == 0;
    const ptrdiff_t first = (ptrdiff_t)(i * POSENC_ROW_BLOCK + j) * size * (1 + side_by_side);
    put(job, t, first, job->cosine_first ? cos : sin);
    put(job, t, first + (side_by_side ? size : job->second), job->cosine_first ? sin : cos);
}

static void put_pairs(const struct posenc_sinusoid_job *job, size_t i, size_t j)
{
    const double twice_cos = job->blocks[i].twice_cos[j];
    double cos[2] = {0, 0}, sin[2] = {0, 0};
    for (size_t t = 0; t < job->tokens; t++) {
        const size_t step = job->step + t, n = step % POSENC_SINUSOID_GROUP;
        if (t == 0 || n == 0)
            start(&job->blocks[i], &job->state[i], step / POSENC_SINUSOID_GROUP, j, cos, sin);
        for (size_t k = 0; t == 0 && k < n; k++) {
            turn_on(twice_cos, cos);
            turn_on(twice_cos, sin);
        }
        put_pair(job, t, i, j, cos[0], sin[0]);
        turn_on(twice_cos, cos);
        turn_on(twice_cos, sin);
    }
}

void posenc_sinusoid_scalar(const struct posenc_sinusoid_job *job)
{
    for (size_t i = 0; i < job->count; i++)
        for (size_t j = 0; j < POSENC_ROW_BLOCK; j++)
            put_pairs(job, i, j);
}
