/* SPDX-License-Identifier: MIT */
/* The short way of a sinusoid: rows of float32 made where they belong. */
#include "sinusoid_direct.h"

#include "embeddings.h"
#include "sides.h"

/* Base rows of four runs: 32 KiB. Copies: streams that one row goes to in a call. A row alone is
 * asked for in two steps, since lines wait in the first cache beside the base rows. From ADD_ROWS
 * sequences on rows are added one token after another. All measured. */
enum {
    RUNS = POSENC_STRETCH / POSENC_ROW_STEPS + 1,
    PAIRS = 512,
    COPIES = 8,
    NEAR = 256,
    AHEAD = 2048,
    ADD_ROWS = 4,
    ADD_AHEAD = 1024
};

/* One chunk of pairs of a stretch. */
struct chunk {
    const struct posenc_sinusoid_direct *call;
    const struct posenc_sinusoid_axis *axis;
    const struct posenc_sinusoid_stretch *stretch;
    int64_t channel;
    size_t lead; /* the step of the first token */
    struct posenc_sinusoid_job job;
};

/* Ascending positions, one after another, none of them the padding row. */
static int are_plain(const struct posenc_sinusoid_stretch *s, int64_t padding)
{
    const int64_t first = s->ids.whole[0];
    if (!s->runs || first < 0 || (padding >= first && padding < first + (int64_t)s->tokens))
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

/* The rows of one step for all runs that have it. */
static void put_step(struct chunk *c, const double *bases, size_t step, int64_t batch)
{
    struct posenc_sinusoid_job *job = &c->job;
    const struct posenc_sinusoid_direct *call = c->call;
    const size_t run = step < c->lead;
    const size_t t = run * POSENC_ROW_STEPS + step - c->lead;
    if (t >= c->stretch->tokens)
        return;
    const int64_t token = c->stretch->token + (int64_t)t;
    job->step = (uint32_t)step;
    job->runs = (c->stretch->tokens - t + POSENC_ROW_STEPS - 1) / POSENC_ROW_STEPS;
    job->base_cos = bases + run * 2 * PAIRS;
    job->base_sin = job->base_cos + PAIRS;
    job->y = posenc_element(call->out, batch, token, 0, c->channel);
    if (call->x)
        job->x = posenc_element(call->x, batch, token, 0, c->channel);
    call->sinusoid->kernels->sinusoid(job);
}

/* A row made in the first cache and added from there, so that halves are two long pieces of each
 * copy and no pieces of 64 bytes in turns. */
static void add_made_row(const struct chunk *c, struct posenc_sinusoid_job make)
{
    float row[2 * PAIRS];
    const struct posenc_sinusoid_direct *call = c->call;
    const ptrdiff_t second = (ptrdiff_t)(make.pairs * sizeof(float));
    const int parts = make.second == second ? 1 : 2;
    struct posenc_add_job add = {
        .x = make.x,
        .y = make.y,
        .x_copy = make.x_copy,
        .y_copy = make.y_copy,
        .row = row,
        .tokens = 1,
        .count = 2 * make.pairs / (size_t)parts,
        .copies = make.copies,
        .scale = make.scale,
        .ahead = call->ahead * ADD_AHEAD,
    };
    make.x = NULL;
    make.y = (char *)row;
    make.copies = 1;
    make.second = second;
    call->sinusoid->kernels->sinusoid(&make);
    for (int part = 0; part < parts; part++) {
        call->sinusoid->kernels->add[0][0](&add);
        add.x += c->job.second;
        add.y += c->job.second;
        add.row += add.count;
    }
}

/* The row of one token, added to some copies. */
static void add_row(const struct chunk *c, const double *base, size_t t, int64_t batch,
                    int64_t copies)
{
    const struct posenc_sinusoid_direct *call = c->call;
    const int64_t token = c->stretch->token + (int64_t)t;
    struct posenc_sinusoid_job job = c->job;
    job.base_cos = base;
    job.base_sin = base + PAIRS;
    job.step = c->stretch->steps[t];
    job.runs = 1;
    job.copies = (size_t)copies;
    job.x = posenc_element(call->x, batch, token, 0, c->channel);
    job.y = posenc_element(call->out, batch, token, 0, c->channel);
    job.near = job.ahead = 0;
    if (job.second)
        add_made_row(c, job);
    else
        call->sinusoid->kernels->sinusoid(&job);
}

/* Several sequences, one token after another: in each memory is walked through without a jump. */
static void add_chunk(const struct chunk *c)
{
    double base[2 * PAIRS];
    const struct posenc_sinusoid_stretch *s = c->stretch;
    const struct posenc_sinusoid_direct *call = c->call;
    for (const struct posenc_run *run = s->run; run < s->run + s->runs; run++) {
        call->sinusoid->kernels->bases(c->job.blocks, c->job.pairs, run->base, base, base + PAIRS);
        for (int64_t batch = s->batch, copies; batch < call->batch_end; batch += copies) {
            copies = posenc_copies(call->batch_end - batch);
            for (size_t t = run->first; t < (size_t)run->first + run->count; t++)
                add_row(c, base, t, batch, copies);
        }
    }
}

static void put_chunk(struct chunk *c)
{
    double bases[RUNS * 2 * PAIRS];
    const struct posenc_sinusoid_stretch *s = c->stretch;
    const struct posenc_sinusoid_direct *call = c->call;
    for (size_t r = 0; r < s->runs; r++)
        call->sinusoid->kernels->bases(c->job.blocks, c->job.pairs, s->run[r].base,
                                       bases + r * 2 * PAIRS, bases + r * 2 * PAIRS + PAIRS);
    for (int64_t batch = s->batch; batch < call->batch_end; batch += COPIES) {
        const int64_t left = call->batch_end - batch;
        c->job.copies = (size_t)(left < COPIES ? left : COPIES);
        for (size_t step = 0; step < POSENC_ROW_STEPS; step++)
            put_step(c, bases, (c->lead + step) % POSENC_ROW_STEPS, batch);
    }
}

/* Channels side by side of one sequence: run by run. */
static void put_runs(const struct posenc_sinusoid_direct *call,
                     const struct posenc_sinusoid_axis *axis,
                     const struct posenc_sinusoid_stretch *s)
{
    const ptrdiff_t size = sizeof(float);
    struct posenc_sinusoid_run_job job = {
        .blocks = axis->set.blocks,
        .pairs = axis->sines,
        .y_token = posenc_step(call->out, 1) * size,
        .cosine_first = call->sinusoid->params.cosine_first,
        .scale = (float)call->scale,
    };
    for (const struct posenc_run *run = s->run; run < s->run + s->runs; run++) {
        job.base = run->base;
        job.step = s->steps[run->first];
        job.tokens = run->count;
        job.y = posenc_element(call->out, s->batch, s->token + run->first, 0, axis->channel);
        if (call->x) {
            job.x = posenc_element(call->x, s->batch, s->token + run->first, 0, axis->channel);
            job.x_token = posenc_step(call->x, 1) * size;
        }
        call->sinusoid->kernels->sinusoid_run(&job);
    }
}

/* The rest: for each step the rows of all runs. */
static void put_steps(const struct posenc_sinusoid_direct *call,
                      const struct posenc_sinusoid_axis *axis,
                      const struct posenc_sinusoid_stretch *s)
{
    const posenc_sinusoid_params *p = &call->sinusoid->params;
    const int halves = p->arrangement == POSENC_SINUSOID_HALVES;
    const ptrdiff_t size = sizeof(float);
    struct chunk c = {
        .call = call,
        .axis = axis,
        .stretch = s,
        .lead = (size_t)s->ids.whole[0] % POSENC_ROW_STEPS,
        .job = {
            .base_run = 2 * PAIRS,
            .y_run = posenc_step(call->out, 1) * POSENC_ROW_STEPS * size,
            .y_copy = posenc_step(call->out, 0) * size,
            .second = halves ? (ptrdiff_t)axis->sines * size : 0,
            .cosine_first = p->cosine_first,
            .scale = (float)call->scale,
        },
    };
    if (call->ahead) {
        const int alone = call->batch_end - s->batch == 1;
        c.job.near = alone ? NEAR : AHEAD;
        c.job.ahead = alone ? AHEAD : 0;
    }
    if (call->x) {
        c.job.x_run = posenc_step(call->x, 1) * POSENC_ROW_STEPS * size;
        c.job.x_copy = posenc_step(call->x, 0) * size;
    }
    for (size_t first = 0; first < axis->sines; first += PAIRS) {
        const size_t left = axis->sines - first;
        c.channel = axis->channel + (int64_t)(halves ? first : 2 * first);
        c.job.blocks = axis->set.blocks + first / POSENC_ROW_BLOCK;
        c.job.pairs = left < PAIRS ? left : PAIRS;
        if (call->x && call->batch_end - s->batch >= ADD_ROWS)
            add_chunk(&c);
        else
            put_chunk(&c);
    }
}

void posenc_sinusoid_put(const struct posenc_sinusoid_direct *call,
                         const struct posenc_sinusoid_axis *axis,
                         const struct posenc_sinusoid_stretch *s)
{
    const int alone = call->batch_end - s->batch == 1;
    if (alone && call->sinusoid->params.arrangement == POSENC_SINUSOID_INTERLEAVED)
        put_runs(call, axis, s);
    else
        put_steps(call, axis, s);
}
