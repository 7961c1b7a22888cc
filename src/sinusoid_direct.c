/* SPDX-License-Identifier: MIT */
/* The short way of a sinusoid: rows of float32 made where they belong. */
#include "sinusoid_direct.h"

#include "embeddings.h"
#include "sides.h"

/* Pairs of a chunk, 24 KiB on their way from row to row, and rows of it that are made at a time for
 * several sequences, 32 KiB. Measured: what is added to drives both out of the first cache, so that
 * many rows must share the way back. */
enum { PAIRS = 512, BLOCKS = PAIRS / POSENC_ROW_BLOCK, MADE = 8, AHEAD = 1024 };

/* One chunk of pairs of a run. */
struct chunk {
    const struct posenc_sinusoid_direct *call;
    const struct posenc_sinusoid_stretch *stretch;
    int64_t channel;
    size_t pairs;
    ptrdiff_t second;
    struct posenc_sinusoid_job job;
};

/* Ascending positions, one after another, none of them the padding row. */
static int are_plain(const struct posenc_sinusoid_stretch *s, int64_t padding)
{
    const int64_t first = s->ids.whole[0];
    if (posenc_positions_are_real(&s->positions) || first < 0 ||
        (padding >= first && padding < first + (int64_t)s->tokens))
        return 0;
    for (size_t t = 1; t < s->tokens; t++)
        if (s->ids.whole[t] != first + (int64_t)t)
            return 0;
    return 1;
}

int posenc_sinusoid_is_direct(const struct posenc_sinusoid_direct *call,
                              const struct posenc_sinusoid_axis *axis,
                              const struct posenc_sinusoid_stretch *s)
{
    return call->out->dtype == POSENC_F32 && (!call->x || call->x->dtype == POSENC_F32) &&
           axis->sines == axis->cosines && axis->sines % POSENC_ROW_BLOCK == 0 &&
           are_plain(s, call->sinusoid->params.padding_row);
}

/* The only sequence: rows are made where they belong. */
static void put_alone(struct chunk *c, const struct posenc_run *run)
{
    const struct posenc_sinusoid_direct *call = c->call;
    const int64_t token = c->stretch->token + run->first;
    c->job.tokens = run->count;
    c->job.ahead = call->ahead;
    c->job.y = posenc_element(call->out, c->stretch->batch, token, 0, c->channel);
    if (call->x)
        c->job.x = posenc_element(call->x, c->stretch->batch, token, 0, c->channel);
    call->sinusoid->kernels->sinusoid(&c->job);
}

/* A made row for some sequences, as one piece or as two. */
static void put_row(const struct chunk *c, const float *row, int64_t batch, int64_t copies,
                    int64_t token)
{
    const struct posenc_sinusoid_direct *call = c->call;
    const int pieces = c->second == c->job.second ? 1 : 2;
    struct posenc_add_job job = {
        .y = posenc_element(call->out, batch, token, 0, c->channel),
        .y_copy = posenc_step(call->out, 0) * (ptrdiff_t)sizeof(float),
        .row = row,
        .tokens = 1,
        .count = 2 * c->pairs / (size_t)pieces,
        .copies = (size_t)copies,
        .scale = (float)call->scale,
        .ahead = call->copies_ahead * AHEAD,
    };
    if (call->x) {
        job.x = posenc_element(call->x, batch, token, 0, c->channel);
        job.x_copy = posenc_step(call->x, 0) * (ptrdiff_t)sizeof(float);
    }
    for (int i = 0; i < pieces; i++, job.y += c->second, job.row += job.count) {
        if (!call->x) {
            for (int64_t k = 0; k < copies; k++)
                memcpy(job.y + k * job.y_copy, job.row, job.count * sizeof(float));
            continue;
        }
        call->sinusoid->kernels->add[0][0](&job);
        job.x += c->second;
    }
}

/* Several sequences: rows are made in the first cache and go from there to up to 8 at a time, which
 * the CPU follows by itself, for in each memory is walked through without a jump. */
static void put_shared(struct chunk *c, const struct posenc_run *run)
{
    float made[MADE * 2 * PAIRS];
    const struct posenc_sinusoid_stretch *s = c->stretch;
    const size_t row = 2 * c->pairs;
    c->job.y = (char *)made;
    c->job.y_token = (ptrdiff_t)(row * sizeof(float));
    for (size_t t = 0; t < run->count; t += c->job.tokens) {
        c->job.tokens = run->count - t < MADE ? run->count - t : MADE;
        c->call->sinusoid->kernels->sinusoid(&c->job);
        for (int64_t batch = s->batch, copies; batch < c->call->batch_end; batch += copies) {
            copies = posenc_copies(c->call->batch_end - batch);
            for (size_t i = 0; i < c->job.tokens; i++)
                put_row(c, made + i * row, batch, copies,
                        s->token + (int64_t)(run->first + t + i));
        }
        c->job.step += c->job.tokens;
        c->job.goes_on = 1;
    }
}

static void put_chunk(struct chunk *c, const struct posenc_sinusoid_block *blocks,
                      const struct posenc_run *run)
{
    struct posenc_sinusoid_state state[BLOCKS];
    const struct posenc_sinusoid_direct *call = c->call;
    c->job.blocks = blocks;
    c->job.state = state;
    c->job.step = run->step;
    call->sinusoid->kernels->sinusoid_base(blocks, c->job.count, run->base, state);
    if (call->batch_end - c->stretch->batch == 1)
        put_alone(c, run);
    else
        put_shared(c, run);
}

void posenc_sinusoid_put(const struct posenc_sinusoid_direct *call,
                         const struct posenc_sinusoid_axis *axis,
                         const struct posenc_sinusoid_stretch *s)
{
    const posenc_sinusoid_params *p = &call->sinusoid->params;
    const int halves = p->arrangement == POSENC_SINUSOID_HALVES;
    const ptrdiff_t size = sizeof(float);
    for (const struct posenc_run *run = s->run; run < s->run + s->runs; run++)
        for (size_t first = 0, pairs; first < axis->sines; first += pairs) {
            pairs = axis->sines - first < PAIRS ? axis->sines - first : PAIRS;
            const int alone = call->batch_end - s->batch == 1;
            struct chunk c = {
                .call = call,
                .stretch = s,
                .channel = axis->channel + (int64_t)(halves ? first : 2 * first),
                .pairs = pairs,
                .second = halves ? (ptrdiff_t)axis->sines * size : 0,
                .job = {
                    .count = pairs / POSENC_ROW_BLOCK,
                    .y_token = posenc_step(call->out, 1) * size,
                    .x_token = call->x ? posenc_step(call->x, 1) * size : 0,
                    .cosine_first = p->cosine_first,
                    .scale = (float)call->scale,
                },
            };
            c.job.second = alone ? c.second : halves ? (ptrdiff_t)pairs * size : 0;
            put_chunk(&c, axis->blocks + first / POSENC_ROW_BLOCK, run);
        }
}
