/* SPDX-License-Identifier: MIT */
/* Rotation of Q and K: by rows that exist, by rows made on the way, and for contiguous arrays. */
#include "copy_channels.h"
#include "error.h"
#include "glance.h"
#include "rotate_f64.h"
#include "sides.h"
#include "tensor.h"

static void copy_channels(const posenc_plan *plan, const struct posenc_side *s, int64_t from,
                          int64_t to)
{
    const posenc_tensor *in = s->in, *out = s->out;
    if (from == to)
        return;
    const struct posenc_copy copy = {
        .from = in->dtype,
        .to = out->dtype,
        .src_token = posenc_step(in, 1) * (ptrdiff_t)posenc_dtype_size(in->dtype),
        .src_head = posenc_step(in, 2) * (ptrdiff_t)posenc_dtype_size(in->dtype),
        .dst_token = posenc_step(out, 1) * (ptrdiff_t)posenc_dtype_size(out->dtype),
        .dst_head = posenc_step(out, 2) * (ptrdiff_t)posenc_dtype_size(out->dtype),
        .tokens = in->shape[1],
        .heads = in->shape[2],
        .channels = to - from,
    };
    for (int64_t b = 0; b < in->shape[0]; b++)
        posenc_copy_channels(plan->kernels, &copy, posenc_element(in, b, 0, 0, from),
                             posenc_element(out, b, 0, 0, from));
}

/* Channels outside the window are copied, unless they are there already. */
static void copy_rest(const posenc_plan *plan, const struct posenc_side *s)
{
    if (!s->in || s->in == s->out || posenc_tensor_is_empty(s->in))
        return;
    int64_t first = posenc_window(plan, s->in);
    copy_channels(plan, s, 0, first);
    copy_channels(plan, s, first + plan->rotary_dim, s->in->shape[3]);
}

/*
 * The work of a call as the kernels take it: Q and K in one pass where their dtypes agree, so that
 * each row is loaded once for both, else in two.
 */
struct pass {
    posenc_rotate_kernel *kernel;
    const struct posenc_side *side[2];
    struct posenc_rotate_job job;
};

struct work {
    const posenc_plan *plan;
    int32_t direction;
    int64_t batch, tokens;
    int wide; /* F64 tensors and rows: the passes are one for each side and have no kernel */
    int passes;
    struct pass pass[2];
};

static void add_to_pass(struct pass *pass, const posenc_plan *plan, const struct posenc_side *s)
{
    const int64_t in = posenc_dtype_size(s->in->dtype), out = posenc_dtype_size(s->out->dtype);
    const int32_t layout = plan->layout - 1;
    int n = pass->job.sides++;
    pass->side[n] = s;
    pass->kernel = plan->out_layout == plan->layout
                       ? plan->kernels->rotate[layout][s->in->dtype - 1][s->out->dtype - 1]
                       : plan->kernels->rotate_across[layout][s->in->dtype - 1][s->out->dtype - 1];
    pass->job.side[n].src_token = (ptrdiff_t)(posenc_step(s->in, 1) * in);
    pass->job.side[n].src_head = (ptrdiff_t)(posenc_step(s->in, 2) * in);
    pass->job.side[n].dst_token = (ptrdiff_t)(posenc_step(s->out, 1) * out);
    pass->job.side[n].dst_head = (ptrdiff_t)(posenc_step(s->out, 2) * out);
    pass->job.side[n].heads = (size_t)s->in->shape[2];
}

static int64_t bytes_of(const posenc_plan *plan, const struct posenc_side *s)
{
    const posenc_tensor *t = s->in;
    return t->shape[0] * t->shape[1] * t->shape[2] * plan->rotary_dim * posenc_dtype_size(t->dtype);
}

static void make_work(struct work *work, const posenc_plan *plan, int32_t direction,
                      const struct posenc_side side[2])
{
    const posenc_tensor *t = side[0].in ? side[0].in : side[1].in;
    int64_t bytes = 0;
    work->plan = plan;
    work->direction = direction;
    work->batch = t->shape[0];
    work->tokens = t->shape[1];
    work->wide = posenc_sides_are_wide(side);
    work->passes = 0;
    for (int i = 0; i < 2; i++) {
        if (!side[i].in || posenc_tensor_is_empty(side[i].in))
            continue;
        if (work->wide) {
            work->pass[work->passes++].side[0] = &side[i];
            continue;
        }
        int together = work->passes && side[0].in->dtype == side[1].in->dtype &&
                       side[0].out->dtype == side[1].out->dtype;
        if (!together)
            work->pass[work->passes++].job.sides = 0;
        bytes += bytes_of(plan, &side[i]);
        add_to_pass(&work->pass[work->passes - 1], plan, &side[i]);
    }
    for (int i = 0; !work->wide && i < work->passes; i++) {
        work->pass[i].job.partner = (size_t)plan->pairs;
        work->pass[i].job.ahead = posenc_asks_ahead(bytes);
    }
}

/* The first channel of the pairs from `first` on. */
static int64_t skipped(int32_t layout, size_t first)
{
    return (int64_t)first * (layout == POSENC_ADJACENT ? 2 : 1);
}

static void rotate_pairs(struct work *work, const struct posenc_stretch *w)
{
    const int64_t in = skipped(work->plan->layout, w->first);
    const int64_t out = skipped(work->plan->out_layout, w->first);
    for (int i = 0; i < work->passes; i++) {
        struct posenc_rotate_job *job = &work->pass[i].job;
        job->cos = w->cos;
        job->sin = w->sin;
        job->row_stride = w->row_stride;
        job->tokens = w->tokens;
        job->pairs = w->count;
        for (int n = 0; n < job->sides; n++) {
            const struct posenc_side *s = work->pass[i].side[n];
            const int64_t window = posenc_window(work->plan, s->in);
            job->side[n].src = posenc_element(s->in, w->batch, w->token, 0, window + in);
            job->side[n].dst = posenc_element(s->out, w->batch, w->token, 0, window + out);
        }
        work->pass[i].kernel(job);
    }
}

enum { CHUNK_PAIRS = 256, CHUNK_FLOATS = 8192 }; /* 32 KiB of rows on the stack */

/* Each row goes through posenc_turn_row into a buffer, a few pairs at a time. */
static void rotate_turned(struct work *work, const struct posenc_stretch *whole)
{
    float cos[CHUNK_PAIRS], sin[CHUNK_PAIRS];
    const double scale = posenc_turned_scale(work->plan, work->direction);
    struct posenc_stretch w = *whole;
    w.tokens = 1;
    w.cos = cos;
    w.sin = sin;
    for (size_t t = 0; t < whole->tokens; t++, w.token++)
        for (size_t i = 0; i < whole->count; i += CHUNK_PAIRS) {
            ptrdiff_t at = (ptrdiff_t)t * whole->row_stride + (ptrdiff_t)i;
            w.first = whole->first + i;
            w.count = whole->count - i < CHUNK_PAIRS ? whole->count - i : CHUNK_PAIRS;
            posenc_turn_row(scale, (const float *)whole->cos + at, (const float *)whole->sin + at,
                            w.count, cos, sin);
            rotate_pairs(work, &w);
        }
}

static void rotate_stretch(struct work *work, const struct posenc_stretch *w)
{
    if (work->wide)
        for (int i = 0; i < work->passes; i++)
            posenc_rotate_f64(work->plan, work->direction, work->pass[i].side[0], w);
    else if (work->direction == POSENC_FORWARD)
        rotate_pairs(work, w);
    else
        rotate_turned(work, w);
}

static int32_t fail_rows(const posenc_plan *plan, int wide, const posenc_tensor *rows,
                         posenc_error *error)
{
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "rows is [%d, %d, %d, %d] of dtype %d: must be [batch, tokens, 1, %d] of %s",
                       rows->shape[0], rows->shape[1], rows->shape[2], rows->shape[3],
                       (int64_t)rows->dtype, (int64_t)plan->rotary_dim,
                       wide ? "POSENC_F64, as q and k are" : "POSENC_F32");
}

static int32_t check_rows(const posenc_plan *plan, const struct posenc_side side[2],
                          const posenc_tensor *rows, posenc_error *error)
{
    struct posenc_view view;
    const int wide = posenc_sides_are_wide(side);
    int32_t status = posenc_row_view_check(&view, rows, "rows", error);
    if (status)
        return status;
    if (rows->dtype != (wide ? POSENC_F64 : POSENC_F32) || rows->shape[2] != 1 ||
        rows->shape[3] != plan->rotary_dim)
        return fail_rows(plan, wide, rows, error);
    const posenc_tensor *t = side[0].in ? side[0].in : side[1].in;
    if (rows->shape[0] != 1 && rows->shape[0] != t->shape[0])
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rows.shape[0] is %d: must be 1 or the batch of q and k (%d)",
                           rows->shape[0], t->shape[0]);
    if (rows->shape[1] != t->shape[1])
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rows.shape[1] is %d: must be the tokens of q and k (%d)",
                           rows->shape[1], t->shape[1]);
    for (int i = 0; i < 2 && !status; i++)
        if (side[i].in)
            status = posenc_disjoint_check(&side[i].out_view, &view, error);
    return status;
}

static __attribute__((noinline)) int32_t
rotate_after_checks(const posenc_plan *plan, int32_t direction, const posenc_tensor *rows,
                    const posenc_tensor *q, const posenc_tensor *q_out, const posenc_tensor *k,
                    const posenc_tensor *k_out, posenc_error *error)
{
    struct posenc_side side[2];
    struct work work;
    int32_t status = posenc_sides_check(plan, direction,
                                        &(struct posenc_tensors){q, q_out, k, k_out}, side, error);
    if (!status)
        status = check_rows(plan, side, rows, error);
    if (status)
        return status;
    make_work(&work, plan, direction, side);
    copy_rest(plan, &side[0]);
    copy_rest(plan, &side[1]);
    struct posenc_stretch w = {
        .tokens = (size_t)work.tokens,
        .count = (size_t)plan->pairs,
        .row_stride = posenc_step(rows, 1),
    };
    for (; work.passes && w.batch < work.batch; w.batch++) {
        w.cos = posenc_element(rows, w.batch, 0, 0, 0);
        w.sin = posenc_element(rows, w.batch, 0, 0, plan->pairs);
        rotate_stretch(&work, &w);
    }
    return POSENC_OK;
}

static inline void plain_side(const posenc_plan *plan, const posenc_tensor *t,
                              const struct posenc_in_place *by, struct posenc_rotate_side *s)
{
    s->src = s->dst = (char *)t->data + (t->shape[3] == plan->head_dim ? by->offset : 0);
    s->heads = (size_t)t->shape[2];
    s->src_head = s->dst_head =
        t->shape[2] == 1 ? 0 : (ptrdiff_t)t->stride[2] * (ptrdiff_t)by->size;
}

/* For one token the kernels read no more than this of a job with its sides. */
static inline int32_t rotate_token(const posenc_plan *plan, const posenc_tensor *rows,
                                   const struct posenc_in_place *by, int sides,
                                   struct posenc_rotate_job *job)
{
    job->cos = rows->data;
    job->pairs = job->partner = (size_t)plan->pairs;
    job->sin = job->cos + job->pairs;
    job->tokens = 1;
    job->ahead = 0;
    job->sides = sides;
    by->kernel(job);
    return POSENC_OK;
}

static inline int32_t rotate_one(const posenc_plan *plan, const posenc_tensor *rows,
                                 const posenc_tensor *t, const struct posenc_in_place *by)
{
    struct posenc_rotate_job job;
    plain_side(plan, t, by, &job.side[0]);
    return rotate_token(plan, rows, by, 1, &job);
}

/*
 * These two are functions of their own, so that one head needs no room for their registers. Plan,
 * rows and q are where posenc_rotate has them, so that none need be moved.
 */
static __attribute__((noinline)) int32_t rotate_heads(const posenc_plan *plan, posenc_error *error,
                                                      const posenc_tensor *rows,
                                                      const posenc_tensor *q,
                                                      const posenc_tensor *k)
{
    const posenc_tensor *t = q ? q : k;
    const struct posenc_in_place *by = t ? posenc_in_place_of(plan, t) : NULL;
    if (by && posenc_is_one_token(plan, rows, t, t) && posenc_plain_bytes(plan, rows, t, by))
        return rotate_one(plan, rows, t, by);
    return rotate_after_checks(plan, POSENC_FORWARD, rows, q, NULL, k, NULL, error);
}

static __attribute__((noinline)) int32_t rotate_both(const posenc_plan *plan, posenc_error *error,
                                                     const posenc_tensor *rows,
                                                     const posenc_tensor *q,
                                                     const posenc_tensor *k)
{
    const struct posenc_in_place *by = posenc_in_place_of(plan, q);
    uintptr_t q_bytes = 0, k_bytes = 0;
    if (by && q->dtype == k->dtype && posenc_is_one_token(plan, rows, q, k)) {
        q_bytes = posenc_plain_bytes(plan, rows, q, by);
        k_bytes = posenc_plain_bytes(plan, rows, k, by);
    }
    if (!q_bytes || !k_bytes || !posenc_lie_apart((uintptr_t)q->data, q_bytes - 1,
                                                  (uintptr_t)k->data, q_bytes + k_bytes - 1))
        return rotate_after_checks(plan, POSENC_FORWARD, rows, q, NULL, k, NULL, error);
    struct posenc_rotate_job job;
    struct posenc_rotate_side *a = &job.side[0], *b = &job.side[1];
    plain_side(plan, q, by, a);
    plain_side(plan, k, by, b);
    /* K right behind Q, as a packed projection leaves them, is only more heads. */
    int packed = a->src + (ptrdiff_t)a->heads * a->src_head == b->src && a->src_head == b->src_head;
    if (packed)
        a->heads += b->heads;
    return rotate_token(plan, rows, by, packed ? 1 : 2, &job);
}

int32_t posenc_rotate(const posenc_plan *plan, int32_t direction, const posenc_tensor *rows,
                      const posenc_tensor *q, const posenc_tensor *q_out, const posenc_tensor *k,
                      const posenc_tensor *k_out, posenc_error *error)
{
    if (__builtin_expect(!plan || !rows || direction != POSENC_FORWARD || q_out || k_out, 0))
        return rotate_after_checks(plan, direction, rows, q, q_out, k, k_out, error);
    if (q && k)
        return rotate_both(plan, error, rows, q, k);
    if (!q)
        return rotate_heads(plan, error, rows, NULL, k);
    const struct posenc_in_place *by = posenc_in_place_of(plan, q);
    if (__builtin_expect(by && posenc_is_one_head(plan, rows, q, by) &&
                             posenc_is_one_token(plan, rows, q, q),
                         1))
        return rotate_one(plan, rows, q, by);
    return rotate_heads(plan, error, rows, q, NULL);
}

/* Tokens of one batch row, in stretches whose rows fit the stack. */
static void rope_batch_row(struct work *work, const posenc_positions *positions, int64_t b)
{
    double scratch[CHUNK_FLOATS / 2];
    const int32_t dtype = work->wide ? POSENC_F64 : POSENC_F32;
    const size_t room = sizeof(scratch) / (size_t)posenc_dtype_size(dtype);
    size_t pairs = (size_t)work->plan->pairs;
    for (size_t first = 0; first < pairs; first += CHUNK_PAIRS) {
        size_t count = pairs - first < CHUNK_PAIRS ? pairs - first : CHUNK_PAIRS;
        /* At most 64 tokens and at least 16 (8 of F64), of F32 in whole blocks of the tables. */
        int64_t fits = (int64_t)(room / (2 * count)), most = fits > 64 ? 64 : fits / 8 * 8;
        struct posenc_rows_target to = {
            .cos = scratch,
            .sin = (char *)scratch + (int64_t)count * posenc_dtype_size(dtype),
            .dtype = dtype,
            .stride = (ptrdiff_t)(2 * count),
            .first = first,
            .count = count,
        };
        struct posenc_stretch w = {
            .batch = b,
            .first = first,
            .count = count,
            .cos = to.cos,
            .sin = to.sin,
            .row_stride = to.stride,
        };
        for (; w.token < work->tokens; w.token += most) {
            int64_t left = work->tokens - w.token;
            w.tokens = (size_t)(left < most ? left : most);
            posenc_rows_fill(&(struct posenc_rows_span){work->plan, positions, b, w.token,
                                                        w.tokens},
                             &to);
            rotate_stretch(work, &w);
        }
    }
}

int32_t posenc_rope(const posenc_plan *plan, int32_t direction, const posenc_positions *positions,
                    const posenc_tensor *q, const posenc_tensor *q_out, const posenc_tensor *k,
                    const posenc_tensor *k_out, posenc_error *error)
{
    struct posenc_side side[2];
    struct work work;
    posenc_positions copy;
    int32_t status = posenc_sides_check(plan, direction,
                                        &(struct posenc_tensors){q, q_out, k, k_out}, side, error);
    if (!status && posenc_sides_are_wide(side))
        status = posenc_wide_rows_check(plan, side[0].in ? "q.dtype" : "k.dtype", error);
    if (status)
        return status;
    make_work(&work, plan, direction, side);
    /* Without heads no position is read, however many tokens are said to be there. */
    const int64_t batch = work.passes ? work.batch : 0;
    status = posenc_positions_check(&copy, positions, plan, batch, work.tokens, error);
    for (int i = 0; i < 2 && !status; i++)
        if (side[i].in)
            status = posenc_positions_apart(&copy, batch, work.tokens, &side[i].out_view, error);
    if (status)
        return status;
    copy_rest(plan, &side[0]);
    copy_rest(plan, &side[1]);
    for (int64_t b = 0; b < batch; b++)
        rope_batch_row(&work, &copy, b);
    return POSENC_OK;
}

int32_t posenc_rope_flat(const posenc_plan *plan, void *q, void *k, int32_t dtype, size_t batch,
                         size_t tokens, size_t q_heads, size_t k_heads, int64_t start,
                         posenc_error *error)
{
    const size_t count[4] = {batch, tokens, q_heads, k_heads};
    static const char *const name[4] = {"batch", "tokens", "q_heads", "k_heads"};
    posenc_tensor views[2];
    posenc_positions positions;
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL: must be given");
    for (int i = 0; i < 4; i++)
        if (count[i] > INT64_MAX >> 1)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is 2^62 or more: must be less",
                               name[i]);
    if (!q != !q_heads || !k != !k_heads)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "q is %s with q_heads %d, k is %s with k_heads %d: an array is given "
                           "exactly if it has heads",
                           q ? "given" : "NULL", (int64_t)q_heads, k ? "given" : "NULL",
                           (int64_t)k_heads);
    posenc_tensor_contiguous(&views[0], q, dtype, (int64_t)batch, (int64_t)tokens, (int64_t)q_heads,
                             plan->head_dim);
    posenc_tensor_contiguous(&views[1], k, dtype, (int64_t)batch, (int64_t)tokens, (int64_t)k_heads,
                             plan->head_dim);
    posenc_positions_start(&positions, start);
    return posenc_rope(plan, POSENC_FORWARD, &positions, q ? &views[0] : NULL, NULL,
                       k ? &views[1] : NULL, NULL, error);
}
