/* SPDX-License-Identifier: MIT */
/* Making sinusoids: frequencies and tables of every axis. */
#include "sinusoid.h"

#include <stdlib.h>

#include "error.h"
#include "rows.h"
#include "structs.h"

void posenc_sinusoid_params_init(posenc_sinusoid_params *params)
{
    *params = (posenc_sinusoid_params){
        .struct_size = sizeof(*params),
        .base = 10000,
        .scale = 1,
        .padding_row = -1,
    };
}

/* Positions whose sum with the offset has 32 bits, below the limit. */
static struct posenc_range range_of(const posenc_sinusoid_params *p)
{
    const int64_t offset = p->position_offset;
    struct posenc_range range = {INT32_MIN - (offset < 0 ? offset : 0),
                                 INT32_MAX - (offset > 0 ? offset : 0), "32-bit positions"};
    if (offset)
        range.why = "32-bit positions, position_offset included";
    if (p->max_position && p->max_position - 1 < range.high) {
        range.high = p->max_position - 1;
        range.why = "max_position";
    }
    return range;
}

void posenc_sinusoid_block_init(struct posenc_sinusoid_block *block, const double *inv_freq,
                                int count)
{
    for (int i = 0; i < POSENC_ROW_BLOCK; i++) {
        const struct posenc_turns w = posenc_put_turns(block->w, i, i < count ? inv_freq[i] : 0);
        for (uint32_t p = 0; p < POSENC_SINUSOID_STEPS; p++) {
            const uint32_t group = p / POSENC_SINUSOID_GROUP, n = p % POSENC_SINUSOID_GROUP;
            if (n < 2)
                posenc_sincos(posenc_turns_times(w, p), &block->step_sin[group][n][i],
                              &block->step_cos[group][n][i]);
        }
        block->twice_cos[i] = 2 * block->step_cos[0][1][i];
    }
}

static int fill_tables(struct posenc_sinusoid_axis *s, const posenc_sinusoid_params *p, int32_t dim)
{
    const size_t pairs = (size_t)posenc_sinusoid_pairs(p, dim);
    const size_t blocks = (pairs + POSENC_ROW_BLOCK - 1) / POSENC_ROW_BLOCK;
    s->set.attention_factor = 1;
    s->set.inv_freq = malloc(pairs * sizeof(double));
    s->blocks = aligned_alloc(64, blocks * sizeof(struct posenc_sinusoid_block));
    if (!s->set.inv_freq || !s->blocks)
        return 0;
    posenc_sinusoid_frequencies(p, dim, s->set.inv_freq);
    for (size_t b = 0; b < blocks; b++) {
        size_t first = b * POSENC_ROW_BLOCK, rest = pairs - first;
        posenc_sinusoid_block_init(&s->blocks[b], s->set.inv_freq + first,
                                   rest < POSENC_ROW_BLOCK ? (int)rest : POSENC_ROW_BLOCK);
    }
    return 1;
}

/* Where the channels of one axis lie and what they hold. */
static void lay_out(struct posenc_sinusoid *made, struct posenc_sinusoid_axis *s, int32_t dim,
                    int64_t channel)
{
    const int32_t pairs = posenc_sinusoid_pairs(&made->params, dim);
    s->plan = made->positions;
    s->plan.axes = 1;
    s->plan.pairs = pairs;
    s->plan.sets = &s->set;
    s->channel = channel;
    s->sines = (size_t)pairs;
    s->cosines = (size_t)(dim / 2);
    s->zeros = (size_t)dim - s->sines - s->cosines;
}

static struct posenc_sinusoid *make(const posenc_sinusoid_params *p,
                                    const struct posenc_kernels *kernels)
{
    struct posenc_sinusoid *made = calloc(1, sizeof(*made));
    if (!made)
        return NULL;
    made->params = *p;
    made->kernels = kernels;
    made->axes = p->axes > 1 ? (size_t)p->axes : 1;
    made->positions = (posenc_plan){
        .kernels = kernels,
        .rows_by = POSENC_ROWS_EXACT,
        .row_dtype = POSENC_F32,
        .range = range_of(p),
        .axes = (int32_t)made->axes,
        .num_sets = 1,
    };
    int64_t channel = 0;
    for (size_t a = 0; a < made->axes; a++) {
        const int32_t dim = p->axes > 1 ? p->axis_dim[a] : p->dim;
        lay_out(made, &made->axis[a], dim, channel);
        channel += dim;
        if (!fill_tables(&made->axis[a], p, dim)) {
            posenc_sinusoid_free(made);
            return NULL;
        }
    }
    return made;
}

int32_t posenc_sinusoid_create(posenc_sinusoid **sinusoid, const posenc_sinusoid_params *params,
                               posenc_error *error)
{
    posenc_sinusoid_params p;
    const struct posenc_kernels *kernels = NULL;
    if (!sinusoid)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "sinusoid is NULL: must be given");
    int32_t status = posenc_struct_read(&p, sizeof(p), sizeof(p), params, "params", error);
    if (!status)
        status = posenc_sinusoid_params_check(&p, error);
    if (!status)
        status = posenc_kernels_choose(&kernels, p.isa, "isa", error);
    if (status)
        return status;
    struct posenc_sinusoid *made = make(&p, kernels);
    if (!made)
        return posenc_fail(error, POSENC_ERROR_MEMORY, "no memory for a sinusoid of %d channels",
                           (int64_t)p.dim);
    *sinusoid = made;
    return POSENC_OK;
}

void posenc_sinusoid_free(posenc_sinusoid *sinusoid)
{
    if (!sinusoid)
        return;
    for (size_t a = 0; a < sinusoid->axes; a++) {
        free(sinusoid->axis[a].set.inv_freq);
        free(sinusoid->axis[a].blocks);
    }
    free(sinusoid);
}
