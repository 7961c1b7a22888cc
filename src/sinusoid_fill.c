/* SPDX-License-Identifier: MIT */
/* Sinusoids written to a tensor or added to one: checks, then rows by stretches of tokens. */
#include <math.h>

#include "embeddings.h"
#include "error.h"
#include "sides.h"
#include "sinusoid_direct.h"

/* Pairs whose rows are made at a time, 24 KiB on their way from row to row, and the floats of such
 * rows, 16 KiB, so that both stay in the first cache. For a batch that shares its rows they are 32
 * KiB, so that each batch row is walked through for longer. */
enum { CHUNK = 512, ROOM = 4096, BATCH_ROOM = 8192 };

/* One call. */
struct work {
    const posenc_sinusoid *sinusoid;
    const posenc_positions *positions;
    const posenc_tensor *x; /* NULL: rows are written, not added */
    const posenc_tensor *out;
    double scale;
    int ahead;        /* 1: memory is asked for before it is written */
    int copies_ahead; /* the same of several sequences in float32: posenc_asks_ahead */
    int shared; /* 1: all batch rows stand at the same positions */
};

/* Rows of some pairs for a stretch, in scratch. The sines may be one more than the cosines. */
struct rows {
    const void *sin, *cos; /* F32, or F64 where the output is */
    ptrdiff_t stride;      /* elements from token to token */
    size_t first, sines, cosines;
};

/* Channels of a stretch. */
struct place {
    const struct work *work;
    int64_t batch, token;
    size_t tokens;
    int ahead; /* 1: what comes behind it in the same batch row is asked for */
};

static int is_wide(const struct work *w)
{
    return w->out->dtype == POSENC_F64;
}

static void put_wide(const struct place *p, int64_t channel, int64_t step, const double *values,
                     ptrdiff_t stride, size_t count)
{
    const struct work *w = p->work;
    for (size_t t = 0; t < p->tokens; t++, values += stride) {
        const int64_t token = p->token + (int64_t)t;
        double *y = (void *)posenc_element(w->out, p->batch, token, 0, channel);
        const double *x = w->x ? (void *)posenc_element(w->x, p->batch, token, 0, channel) : NULL;
        for (int64_t i = 0; i < (int64_t)count; i++)
            y[i * step] = x ? fma(x[i * step], w->scale, values[i]) : values[i];
    }
}

/* A job on `count` channels or pairs from `channel` on. */
static struct posenc_add_job job_on(const struct place *p, int64_t channel, const float *values,
                                    ptrdiff_t stride, size_t count)
{
    const struct work *w = p->work;
    const ptrdiff_t size = (ptrdiff_t)posenc_dtype_size(w->out->dtype);
    struct posenc_add_job job = {
        .y = posenc_element(w->out, p->batch, p->token, 0, channel),
        .y_token = posenc_step(w->out, 1) * size,
        .row = values,
        .row_token = stride,
        .tokens = p->tokens,
        .count = count,
        .copies = 1,
    };
    job.ahead = p->ahead ? (ptrdiff_t)p->tokens * job.y_token : 0;
    if (w->x) {
        job.x = posenc_element(w->x, p->batch, p->token, 0, channel);
        job.x_token = posenc_step(w->x, 1) * (ptrdiff_t)posenc_dtype_size(w->x->dtype);
        job.scale = (float)w->scale;
    }
    return job;
}

/* Rows of floats, `count` channels from `channel` on: added, or converted. */
static void put_floats(const struct place *p, int64_t channel, const float *values,
                       ptrdiff_t stride, size_t count)
{
    const struct work *w = p->work;
    const struct posenc_kernels *kernels = w->sinusoid->kernels;
    const int to = w->out->dtype - POSENC_F32;
    struct posenc_add_job job = job_on(p, channel, values, stride, count);
    if (w->x) {
        kernels->add[w->x->dtype - POSENC_F32][to](&job);
        return;
    }
    for (size_t t = 0; t < p->tokens; t++, job.row += stride, job.y += job.y_token)
        if (w->out->dtype == POSENC_F32)
            memcpy(job.y, job.row, count * sizeof(float));
        else
            kernels->convert[0][to](job.row, job.y, count);
}

static void put(const struct place *p, int64_t channel, const void *values, ptrdiff_t stride,
                size_t count)
{
    if (is_wide(p->work))
        put_wide(p, channel, 1, values, stride, count);
    else
        put_floats(p, channel, values, stride, count);
}

/* Where the sine (`part` 0) or the cosine of a pair stands. A sine without its cosine stands last,
 * cosines first or not. */
static int64_t channel_of(const struct work *w, const struct posenc_sinusoid_axis *axis, int part,
                          size_t pair)
{
    const posenc_sinusoid_params *p = &w->sinusoid->params;
    const int second = part != p->cosine_first;
    if (p->arrangement == POSENC_SINUSOID_INTERLEAVED)
        return axis->channel + 2 * (int64_t)pair + (second && pair < axis->cosines);
    return axis->channel + (int64_t)pair +
           (second ? (int64_t)(part ? axis->sines : axis->cosines) : 0);
}

static void put_interleaved(const struct place *p, const struct posenc_sinusoid_axis *axis,
                            const struct rows *rows)
{
    const struct work *w = p->work;
    const int32_t cosine_first = w->sinusoid->params.cosine_first;
    const int to = w->out->dtype - POSENC_F32;
    struct posenc_add_job job =
        job_on(p, axis->channel + 2 * (int64_t)rows->first,
               cosine_first ? rows->cos : rows->sin, rows->stride, rows->cosines);
    job.odd = cosine_first ? rows->sin : rows->cos;
    if (w->x)
        w->sinusoid->kernels->add_pairs[w->x->dtype - POSENC_F32][to](&job);
    else
        w->sinusoid->kernels->write_pairs[to](&job);
}

static void put_rows(const struct place *p, const struct posenc_sinusoid_axis *axis,
                     const struct rows *rows)
{
    const struct work *w = p->work;
    const int64_t sine = channel_of(w, axis, 0, rows->first);
    const int64_t cosine = channel_of(w, axis, 1, rows->first);
    if (w->sinusoid->params.arrangement == POSENC_SINUSOID_HALVES) {
        put(p, sine, rows->sin, rows->stride, rows->sines);
        put(p, cosine, rows->cos, rows->stride, rows->cosines);
        return;
    }
    if (is_wide(w)) {
        put_wide(p, sine, 2, rows->sin, rows->stride, rows->cosines);
        put_wide(p, cosine, 2, rows->cos, rows->stride, rows->cosines);
    } else {
        put_interleaved(p, axis, rows);
    }
    if (rows->sines > rows->cosines) {
        const size_t last = rows->cosines, size = is_wide(w) ? sizeof(double) : sizeof(float);
        put(p, channel_of(w, axis, 0, rows->first + last), (const char *)rows->sin + last * size,
            rows->stride, 1);
    }
}

/* Batch rows that a stretch serves. */
static int64_t batch_end(const struct work *w, const struct posenc_sinusoid_stretch *s)
{
    return w->shared ? w->out->shape[0] : s->batch + 1;
}

static int is_alone(const struct work *w, const struct posenc_sinusoid_stretch *s)
{
    return batch_end(w, s) - s->batch == 1;
}

/* The same rows for all of them. */
static void put_batch(const struct work *w, const struct posenc_sinusoid_axis *axis,
                      const struct posenc_sinusoid_stretch *s, size_t t, size_t tokens,
                      const struct rows *rows)
{
    const int ahead = w->ahead && !is_alone(w, s);
    struct place p = {w, s->batch, s->token + (int64_t)t, tokens, ahead};
    for (; p.batch < batch_end(w, s); p.batch++)
        put_rows(&p, axis, rows);
}

/* Cosines of a chunk of `count` sines: the last sine may stand alone. */
static size_t cosines_of(const struct posenc_sinusoid_axis *axis, size_t first, size_t count)
{
    return axis->cosines - first < count ? axis->cosines - first : count;
}

/* Rows of doubles, and of positions between integers: no matter of speed. */
static void fill_by_rows(const struct work *w, const struct posenc_sinusoid_axis *axis,
                         const struct posenc_sinusoid_stretch *s, size_t from, size_t tokens)
{
    double scratch[POSENC_STRETCH * POSENC_ROW_BLOCK * 2];
    const int wide = is_wide(w);
    for (size_t first = 0; first < axis->sines; first += POSENC_ROW_BLOCK) {
        const size_t left = axis->sines - first;
        const size_t count = left < POSENC_ROW_BLOCK ? left : POSENC_ROW_BLOCK;
        const struct posenc_rows_target to = {
            .cos = scratch,
            .sin = wide ? (void *)(scratch + count) : (void *)((float *)scratch + count),
            .dtype = wide ? POSENC_F64 : POSENC_F32,
            .stride = (ptrdiff_t)(2 * count),
            .first = first,
            .count = count,
        };
        posenc_sinusoid_rows(w->sinusoid, axis, s, from, tokens, &to);
        put_batch(w, axis, s, from, tokens,
                  &(struct rows){to.sin, to.cos, to.stride, first, count,
                                 cosines_of(axis, first, count)});
    }
}

/* Some pairs of a run, a row of sines and one of cosines for each token. */
struct chunk {
    const struct work *work;
    const struct posenc_sinusoid_axis *axis;
    const struct posenc_sinusoid_stretch *stretch;
    const struct posenc_run *run;
    struct posenc_sinusoid_job job;
    size_t first, count, padded;
};

/* Conjugates the rows of negative positions and clears that of the padding. */
static void finish_rows(const struct chunk *c, size_t from, size_t rows, float *sin)
{
    for (size_t t = 0; t < rows; t++, sin += 2 * c->padded) {
        for (size_t i = 0; c->run->negative && i < c->count; i++)
            sin[i] = -sin[i];
        if (posenc_sinusoid_is_padding(c->stretch, from + t,
                                       c->work->sinusoid->params.padding_row))
            memset(sin, 0, 2 * c->padded * sizeof(float));
    }
}

/* The rows of tokens [from, from + tokens), or the one that all of them have. */
static void make_rows(struct chunk *c, size_t from, size_t tokens, float *sin)
{
    const ptrdiff_t row = (ptrdiff_t)(2 * c->padded * sizeof(float));
    c->job.tokens = c->run->direction ? tokens : 1;
    c->job.y_token = c->run->direction < 0 ? -row : row;
    c->job.y = (char *)sin + (c->run->direction < 0 ? (ptrdiff_t)(tokens - 1) * row : 0);
    c->work->sinusoid->kernels->sinusoid(&c->job);
    c->job.step += tokens;
    c->job.goes_on = 1;
    finish_rows(c, from, c->job.tokens, sin);
}

static void fill_chunk(struct chunk *c)
{
    float scratch[BATCH_ROOM];
    struct posenc_sinusoid_state state[CHUNK / POSENC_ROW_BLOCK];
    const struct posenc_run *run = c->run;
    const size_t room = is_alone(c->work, c->stretch) ? ROOM : BATCH_ROOM;
    const size_t group = run->direction ? room / (2 * c->padded) : run->count;
    const struct rows rows = {scratch, scratch + c->padded,
                              run->direction ? (ptrdiff_t)(2 * c->padded) : 0, c->first, c->count,
                              cosines_of(c->axis, c->first, c->count)};
    c->job.state = state;
    c->work->sinusoid->kernels->sinusoid_base(c->job.blocks, c->job.count, run->base, state);
    for (size_t t = 0, tokens; t < run->count; t += tokens) {
        tokens = run->count - t < group ? run->count - t : group;
        const size_t from = run->direction < 0 ? run->count - t - tokens : t;
        make_rows(c, run->first + from, tokens, scratch);
        put_batch(c->work, c->axis, c->stretch, run->first + from, tokens, &rows);
    }
}

static void fill_run(const struct work *w, const struct posenc_sinusoid_axis *axis,
                     const struct posenc_sinusoid_stretch *s, const struct posenc_run *run)
{
    for (size_t first = 0, count; first < axis->sines; first += count) {
        count = axis->sines - first < CHUNK ? axis->sines - first : CHUNK;
        const size_t blocks = (count + POSENC_ROW_BLOCK - 1) / POSENC_ROW_BLOCK;
        const size_t padded = blocks * POSENC_ROW_BLOCK;
        fill_chunk(&(struct chunk){
            .work = w,
            .axis = axis,
            .stretch = s,
            .run = run,
            .job = {.blocks = axis->blocks + first / POSENC_ROW_BLOCK,
                    .count = blocks,
                    .step = run->step,
                    .second = (ptrdiff_t)(padded * sizeof(float))},
            .first = first,
            .count = count,
            .padded = padded,
        });
    }
}

static void fill_axis(const struct work *w, const struct posenc_sinusoid_axis *axis,
                      const struct posenc_sinusoid_stretch *s)
{
    static const union {
        double wide;
        float narrow;
    } zero;
    const struct posenc_sinusoid_direct direct = {w->sinusoid, w->x,     w->out,
                                                  w->scale,    w->ahead, w->copies_ahead,
                                                  batch_end(w, s)};
    if (posenc_sinusoid_is_direct(&direct, axis, s))
        posenc_sinusoid_put(&direct, axis, s);
    else if (is_wide(w))
        fill_by_rows(w, axis, s, 0, s->tokens);
    else
        for (const struct posenc_run *run = s->run; run < s->run + s->runs; run++)
            if (run->real)
                fill_by_rows(w, axis, s, run->first, run->count);
            else
                fill_run(w, axis, s, run);
    struct place p = {w, s->batch, s->token, s->tokens, 0};
    for (; axis->zeros && p.batch < batch_end(w, s); p.batch++)
        put(&p, axis->channel + (int64_t)(axis->sines + axis->cosines), &zero, 0, 1);
}

/* Tokens from `token` on, up to 64. The next stretch begins at a multiple of 64 where positions
 * count on, so that its runs are whole. */
static size_t stretch_at(const struct work *w, int64_t batch, int64_t token)
{
    const int64_t left = w->out->shape[1] - token;
    if (left < POSENC_STRETCH || posenc_positions_are_real(w->positions))
        return (size_t)(left < POSENC_STRETCH ? left : POSENC_STRETCH);
    const int64_t position = w->sinusoid->params.position_offset +
                             posenc_position(w->positions, 0, batch, token);
    return POSENC_STRETCH - ((uint64_t)position & (POSENC_SINUSOID_STEPS - 1));
}

static void fill_all(struct work *w)
{
    struct posenc_sinusoid_stretch s;
    const int64_t tokens = w->out->shape[1];
    w->shared = w->positions->kind == POSENC_POSITIONS_START ||
                (w->positions->kind == POSENC_POSITIONS_IDS && !w->positions->stride[0]);
    for (s.batch = 0; s.batch < (w->shared ? 1 : w->out->shape[0]); s.batch++)
        for (s.token = 0; s.token < tokens; s.token += (int64_t)s.tokens) {
            s.tokens = stretch_at(w, s.batch, s.token);
            for (size_t a = 0; a < w->sinusoid->axes; a++) {
                posenc_sinusoid_stage(&s, w->sinusoid, w->positions, (int)a);
                fill_axis(w, &w->sinusoid->axis[a], &s);
            }
        }
}

static int32_t check_shape(const posenc_sinusoid *sinusoid, const posenc_tensor *t,
                           const char *name, posenc_error *error)
{
    if (t->shape[2] == 1 && t->shape[3] == sinusoid->params.dim)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s.shape is [%d, %d, %d, %d]: must be [batch, tokens, 1, %d]", name,
                       t->shape[0], t->shape[1], t->shape[2], t->shape[3],
                       (int64_t)sinusoid->params.dim);
}

/* The output, the positions, and that they lie apart. */
static int32_t check_out(const posenc_sinusoid *sinusoid, const posenc_positions *positions,
                         posenc_positions *copy, const posenc_tensor *out,
                         const struct posenc_view *view, posenc_error *error)
{
    int32_t status = check_shape(sinusoid, out, view->name, error);
    if (!status)
        status = posenc_writable_check(view, error);
    if (!status)
        status = posenc_positions_check(copy, positions, &sinusoid->positions, out->shape[0],
                                        out->shape[1], error);
    return status ? status
                  : posenc_positions_apart(copy, out->shape[0], out->shape[1], view, error);
}

int32_t posenc_sinusoid_fill(const posenc_sinusoid *sinusoid, const posenc_positions *positions,
                             const posenc_tensor *out, posenc_error *error)
{
    struct posenc_view view;
    posenc_positions copy;
    if (!sinusoid)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "sinusoid is NULL: must be given");
    int32_t status = posenc_data_view_check(&view, out, "out", error);
    if (!status)
        status = check_out(sinusoid, positions, &copy, out, &view, error);
    if (status || posenc_tensor_is_empty(out))
        return status;
    fill_all(&(struct work){.sinusoid = sinusoid, .positions = &copy, .out = out,
                            .ahead = posenc_is_large(&view),
                            .copies_ahead = posenc_asks_ahead(posenc_bytes_of(&view))});
    return POSENC_OK;
}

int32_t posenc_sinusoid_add(const posenc_sinusoid *sinusoid, const posenc_positions *positions,
                            double embedding_scale, const posenc_tensor *x,
                            const posenc_tensor *out, posenc_error *error)
{
    struct posenc_embeddings e;
    posenc_positions copy;
    if (!sinusoid)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "sinusoid is NULL: must be given");
    int32_t status = posenc_embeddings_check(&e, embedding_scale, x, out, error);
    if (!status)
        status = check_out(sinusoid, positions, &copy, e.out, &e.out_view, error);
    if (status || posenc_tensor_is_empty(e.out))
        return status;
    fill_all(&(struct work){
        .sinusoid = sinusoid,
        .positions = &copy,
        .x = x,
        .out = e.out,
        .scale = embedding_scale,
        .ahead = posenc_is_large(&e.out_view),
        .copies_ahead = posenc_asks_ahead(posenc_bytes_of(&e.out_view)),
    });
    return POSENC_OK;
}
