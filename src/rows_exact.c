/* SPDX-License-Identifier: MIT */
/* Exact rows in float32: runs of positions for the kernels, real positions one by one. */
#include "angle.h"
#include "frequencies.h"
#include "plan.h"
#include "rows.h"

enum { RUN = 64 }; /* tokens per kernel call; any number gives the same bits */

void posenc_row_block_part(struct posenc_row_block *block, const double *inv_freq, int count,
                           unsigned steps)
{
    for (int i = 0; i < POSENC_ROW_BLOCK; i++) {
        const struct posenc_turns w = posenc_put_turns(block->w, i, i < count ? inv_freq[i] : 0);
        for (uint32_t j = 0; j < POSENC_ROW_STEPS; j++)
            if (steps >> j & 1)
                posenc_sincos(posenc_turns_times(w, j), &block->step_sin[j][i],
                              &block->step_cos[j][i]);
    }
}

void posenc_row_block_init(struct posenc_row_block *block, const double *inv_freq, int count)
{
    posenc_row_block_part(block, inv_freq, count, 0xffff);
}

/* Frequencies that no table of the plan has, for one block of pairs, made for a call: of a running
 * length of its own, or of a recipe. */
struct own {
    struct posenc_row_block block;
    double inv_freq[POSENC_ROW_BLOCK];
};

/* Where the kernel finds the frequencies of some pairs. */
struct source {
    const struct posenc_row_block *blocks;
    const double *inv_freq;
    double factor;
};

static struct source source_of(const posenc_plan *plan, int32_t set, const struct own *own,
                               const struct posenc_rows_target *to)
{
    const struct posenc_frequency_set *s = &plan->sets[set < 0 ? 0 : set];
    const double factor = to->delta ? 1 : s->attention_factor;
    if (own)
        return (struct source){&own->block, own->inv_freq, factor};
    return (struct source){s->blocks ? s->blocks + to->first / POSENC_ROW_BLOCK : NULL,
                           s->inv_freq + to->first, factor};
}

/* No Base and Step here: the phase of p w is taken in one piece. */
static void fill_real(const struct source *from, double position, size_t count, float *cos,
                      float *sin)
{
    const uint64_t sign = position < 0 ? UINT64_C(1) << 63 : 0;
    const double size = position < 0 ? -position : position;
    for (size_t i = 0; i < count; i++) {
        double s, c;
        posenc_sincos(posenc_turns_of_product(size, from->inv_freq[i]), &s, &c);
        cos[i] = (float)(c * from->factor);
        sin[i] = (float)posenc_double(posenc_bits64(s * from->factor) ^ sign);
    }
}

/* The position of a token if it is an integer. */
static int whole_position(const struct posenc_rows_span *span, int axis, int64_t t, int64_t *p)
{
    if (!posenc_positions_are_real(span->positions)) {
        *p = posenc_position(span->positions, axis, span->batch, t);
        return 1;
    }
    double x = posenc_real_position(span->positions, axis, span->batch, t);
    *p = (int64_t)x;
    return (double)*p == x;
}

/*
 * Collects tokens from t on into a run of one sign, one set and one block of 16 positions, which
 * share the base row. A run of 0 tokens means a position that is not an integer.
 */
static int32_t collect(const struct posenc_rows_span *span, int axis, size_t t,
                       struct posenc_rows_job *job, uint8_t *steps)
{
    int32_t first_set = posenc_rows_set(span, t);
    const int one_set = !span->positions->sets;
    for (job->count = 0; job->count < RUN && t + job->count < span->tokens;) {
        int64_t p;
        if (!whole_position(span, axis, span->token + (int64_t)(t + job->count), &p))
            break;
        uint32_t size = (uint32_t)(p < 0 ? -p : p), base = size - size % POSENC_ROW_STEPS;
        uint64_t sign = p < 0 ? UINT64_C(1) << 63 : 0;
        if (job->count && (base != job->base || sign != job->sine_sign ||
                           (!one_set && posenc_rows_set(span, t + job->count) != first_set)))
            break;
        job->base = base;
        job->sine_sign = sign;
        steps[job->count++] = (uint8_t)(size % POSENC_ROW_STEPS);
    }
    return first_set;
}

/* All pairs of `to` by the positions of one axis. */
static void fill_axis(const struct posenc_rows_span *span, const struct posenc_rows_target *to,
                      int axis, const struct own *own)
{
    uint8_t steps[RUN];
    struct posenc_rows_job job = {.steps = steps, .pairs = to->count, .stride = to->stride};
    for (size_t t = 0; t < span->tokens; t += job.count) {
        int32_t set = collect(span, axis, t, &job, steps);
        struct source from = source_of(span->plan, set, own, to);
        job.blocks = from.blocks;
        job.factor = from.factor;
        job.cos = (float *)to->cos + (ptrdiff_t)t * to->stride;
        job.sin = (float *)to->sin + (ptrdiff_t)t * to->stride;
        if (job.count) {
            span->plan->kernels->rows(&job);
            continue;
        }
        fill_real(&from,
                  posenc_real_position(span->positions, axis, span->batch,
                                       span->token + (int64_t)t),
                  to->count, job.cos, job.sin);
        job.count = 1;
    }
}

/* The bits of the steps that the tokens of a span take, on any axis. */
static unsigned steps_of(const struct posenc_rows_span *span)
{
    const int axes = span->positions->axis_stride ? span->plan->axes : 1;
    unsigned steps = 0;
    for (int axis = 0; axis < axes; axis++)
        for (size_t t = 0; t < span->tokens && steps != 0xffff; t++) {
            int64_t p;
            if (whole_position(span, axis, span->token + (int64_t)t, &p))
                steps |= 1u << (p < 0 ? -p : p) % POSENC_ROW_STEPS;
        }
    return steps;
}

static void make_own(struct own *own, const struct posenc_rows_span *span,
                     const struct posenc_rows_target *to, unsigned steps)
{
    const posenc_plan *plan = span->plan;
    const int64_t length = posenc_length(span->positions, span->batch);
    const int32_t set = posenc_rows_set(span, 0), count = (int32_t)to->count;
    float narrow[POSENC_ROW_BLOCK];
    if (set >= 0) {
        memcpy(own->inv_freq, plan->sets[set].inv_freq + to->first, to->count * sizeof(double));
    } else if (plan->rows_by == POSENC_ROWS_HF_F32) {
        posenc_frequencies_f32(&plan->params, length, 0, (int32_t)to->first, count, narrow);
        for (int32_t i = 0; i < count; i++)
            own->inv_freq[i] = (double)narrow[i];
    } else {
        posenc_frequencies(&plan->params, length, 0, (int32_t)to->first, count, own->inv_freq);
    }
    posenc_row_block_part(&own->block, own->inv_freq, (int)to->count, steps);
}

/* One block of pairs, some of which follow other axes: the rows of each axis are made and those
 * pairs taken that are its own, so that they have the bits of a plan with that axis alone. */
static void fill_mixed(const struct posenc_rows_span *span, const struct posenc_rows_target *to,
                       unsigned axes, const struct own *own)
{
    const int32_t *axis_of_pair = span->plan->axis_of_pair + to->first;
    float cos[RUN][POSENC_ROW_BLOCK], sin[RUN][POSENC_ROW_BLOCK];
    struct posenc_rows_target scratch = {cos, sin, POSENC_F32, POSENC_ROW_BLOCK, to->first,
                                         to->count, to->delta};
    struct posenc_rows_span part = *span;
    for (size_t done = 0; done < span->tokens; done += RUN) {
        size_t left = span->tokens - done;
        part.token = span->token + (int64_t)done;
        part.tokens = left < RUN ? left : RUN;
        for (int axis = 0; axes >> axis; axis++) {
            if (!(axes >> axis & 1))
                continue;
            fill_axis(&part, &scratch, axis, own);
            for (size_t t = 0; t < part.tokens; t++)
                for (size_t i = 0; i < to->count; i++)
                    if (axis_of_pair[i] == axis) {
                        ptrdiff_t at = (ptrdiff_t)(done + t) * to->stride + (ptrdiff_t)i;
                        ((float *)to->cos)[at] = cos[t][i];
                        ((float *)to->sin)[at] = sin[t][i];
                    }
        }
    }
}

/* The axes of some pairs, as bits. */
static unsigned axes_of(const struct posenc_rows_span *span, size_t first, size_t count)
{
    unsigned axes = 0;
    if (!span->positions->axis_stride || !span->plan->axis_of_pair)
        return 1;
    for (size_t i = 0; i < count; i++)
        axes |= 1u << span->plan->axis_of_pair[first + i];
    return axes;
}

/* Block by block; with `made`, by frequencies made for the call, of the one set of the span. */
static void fill_blocks(const struct posenc_rows_span *span, const struct posenc_rows_target *to,
                        int made)
{
    struct own own;
    const unsigned steps = made ? steps_of(span) : 0;
    struct posenc_rows_target block = *to;
    for (size_t i = 0; i < to->count; i += POSENC_ROW_BLOCK) {
        size_t left = to->count - i;
        block.cos = (float *)to->cos + i;
        block.sin = (float *)to->sin + i;
        block.first = to->first + i;
        block.count = left < POSENC_ROW_BLOCK ? left : POSENC_ROW_BLOCK;
        if (made)
            make_own(&own, span, &block, steps);
        const unsigned axes = axes_of(span, block.first, block.count);
        if (axes & (axes - 1))
            fill_mixed(span, &block, axes, made ? &own : NULL);
        else
            fill_axis(span, &block, __builtin_ctz(axes), made ? &own : NULL);
    }
}

/* How many tokens from t on have the set of token t. */
static size_t tokens_alike(const struct posenc_rows_span *span, size_t t)
{
    const int32_t set = posenc_rows_set(span, t);
    size_t alike = 1;
    while (t + alike < span->tokens && posenc_rows_set(span, t + alike) == set)
        alike++;
    return alike;
}

void posenc_rows_exact(const struct posenc_rows_span *span, const struct posenc_rows_target *to)
{
    const int32_t set = posenc_rows_set(span, 0);
    if (set >= 0 && span->plan->sets[set].blocks) {
        if (axes_of(span, to->first, to->count) == 1)
            fill_axis(span, to, 0, NULL);
        else
            fill_blocks(span, to, 0);
        return;
    }
    struct posenc_rows_span part = *span;
    struct posenc_rows_target target = *to;
    for (size_t t = 0; t < span->tokens; t += part.tokens) {
        part.token = span->token + (int64_t)t;
        part.tokens = tokens_alike(span, t);
        target.cos = (float *)to->cos + (ptrdiff_t)t * to->stride;
        target.sin = (float *)to->sin + (ptrdiff_t)t * to->stride;
        fill_blocks(&part, &target, 1);
    }
}
