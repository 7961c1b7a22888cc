/* SPDX-License-Identifier: MIT */
/* Rotation of Q and K: by rows that exist, by rows made on the way, and for contiguous arrays. */
#include "error.h"
#include "plan.h"
#include "tensor.h"

/* Calls that touch more bytes than this read ahead: the data cannot be in the nearer caches. */
enum { AHEAD_BYTES = 1 << 20 };

/* One of Q and K. `in` is NULL where it is absent; `out` equals `in` where it is in place. */
struct side {
    const posenc_tensor *in, *out;
    struct posenc_view in_view, out_view;
};

static int32_t check_output(struct side *s, const posenc_tensor *out, const char *name,
                            posenc_error *error)
{
    int32_t status = posenc_view_check(&s->out_view, out, name, error);
    for (int d = 0; d < 4 && !status; d++)
        if (out->shape[d] != s->in->shape[d])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "%s.shape[%d] is %d: must be %d as in %s", name, (int64_t)d,
                               out->shape[d], s->in->shape[d], s->in_view.name);
    if (status || posenc_views_equal(s->in, out))
        return status;
    s->out = out;
    return posenc_disjoint_check(&s->out_view, &s->in_view, error);
}

static int32_t check_side(const posenc_plan *plan, struct side *s, const posenc_tensor *in,
                          const posenc_tensor *out, const char *in_name, const char *out_name,
                          posenc_error *error)
{
    s->in = s->out = in;
    if (!in) {
        if (out)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL but %s is given", in_name,
                               out_name);
        return POSENC_OK;
    }
    int plain = posenc_view_is_plain(&s->in_view, in, in_name);
    int32_t status = plain ? POSENC_OK : posenc_view_check(&s->in_view, in, in_name, error);
    if (status)
        return status;
    s->out_view = s->in_view;
    if (in->shape[3] != plan->head_dim && in->shape[3] != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.shape[3] is %d: must be the plan's head_dim (%d) or rotary_dim (%d)",
                           in_name, in->shape[3], (int64_t)plan->head_dim,
                           (int64_t)plan->rotary_dim);
    if (out && out != in)
        status = check_output(s, out, out_name, error);
    if (status || (plain && s->out == s->in))
        return status;
    return posenc_writable_check(&s->out_view, error);
}

/* What is written must not be read or written through the other tensor. */
static int32_t check_pair(const struct side side[2], posenc_error *error)
{
    int32_t status = POSENC_OK;
    if (!side[0].in || !side[1].in)
        return status;
    status = posenc_disjoint_check(&side[0].out_view, &side[1].out_view, error);
    if (!status && side[1].out != side[1].in)
        status = posenc_disjoint_check(&side[0].out_view, &side[1].in_view, error);
    if (!status && side[0].out != side[0].in)
        status = posenc_disjoint_check(&side[1].out_view, &side[0].in_view, error);
    return status;
}

/* The arguments that both calls below share. */
struct tensors {
    const posenc_tensor *q, *q_out, *k, *k_out;
};

static int32_t check_all(const posenc_plan *plan, int32_t direction, const struct tensors *t,
                         struct side side[2], posenc_error *error)
{
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL");
    if (direction < POSENC_FORWARD || direction > POSENC_TRANSPOSE)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "direction is %d: must be POSENC_FORWARD, _INVERSE or _TRANSPOSE",
                           (int64_t)direction);
    if (!t->q && !t->k && !t->q_out && !t->k_out)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "q is NULL and k is NULL: one must be given");
    int32_t status = check_side(plan, &side[0], t->q, t->q_out, "q", "q_out", error);
    if (!status)
        status = check_side(plan, &side[1], t->k, t->k_out, "k", "k_out", error);
    return status ? status : check_pair(side, error);
}

/* Where a stretch of tokens of one batch row lies, and its rows. */
struct stretch {
    int64_t batch, token;
    size_t tokens;
    size_t first, count; /* pairs */
    const float *cos, *sin;
    ptrdiff_t row_stride;
};

/* The stride of a dimension; of a single element it means nothing and may be anything. */
static ptrdiff_t step(const posenc_tensor *t, int d)
{
    return t->shape[d] > 1 ? (ptrdiff_t)t->stride[d] : 0;
}

static void *element(const posenc_tensor *t, int64_t b, int64_t token, int64_t channel)
{
    int64_t at = b * step(t, 0) + token * step(t, 1) + channel;
    return (char *)t->data + at * posenc_dtype_size(t->dtype);
}

/* The window may stand alone in the tensor: then it starts at channel 0. */
static int64_t window(const posenc_plan *plan, const posenc_tensor *t)
{
    return t->shape[3] == plan->rotary_dim ? 0 : plan->rotary_offset;
}

static void rotate_pairs(const posenc_plan *plan, const struct side *s, const struct stretch *w,
                         int ahead)
{
    int64_t spread = plan->layout == POSENC_ADJACENT ? 2 : 1;
    int64_t channel = window(plan, s->in) + (int64_t)w->first * spread;
    struct posenc_rotate_job job = {
        .src = element(s->in, w->batch, w->token, channel),
        .dst = element(s->out, w->batch, w->token, channel),
        .src_token = step(s->in, 1),
        .src_head = step(s->in, 2),
        .dst_token = step(s->out, 1),
        .dst_head = step(s->out, 2),
        .cos = w->cos,
        .sin = w->sin,
        .row_stride = w->row_stride,
        .tokens = w->tokens,
        .heads = (size_t)s->in->shape[2],
        .pairs = w->count,
        .partner = (size_t)plan->pairs,
        .ahead = ahead,
    };
    plan->kernels->rotate[plan->layout - 1][s->in->dtype - 1][s->out->dtype - 1](&job);
}

static void copy_channels(const posenc_plan *plan, const struct side *s, int64_t from, int64_t to)
{
    const posenc_tensor *in = s->in, *out = s->out;
    posenc_convert_kernel *convert = plan->kernels->convert[in->dtype - 1][out->dtype - 1];
    if (from == to)
        return;
    for (int64_t b = 0; b < in->shape[0]; b++)
        for (int64_t t = 0; t < in->shape[1]; t++)
            for (int64_t h = 0; h < in->shape[2]; h++) {
                const void *src = element(in, b, t, h * step(in, 2) + from);
                void *dst = element(out, b, t, h * step(out, 2) + from);
                if (convert)
                    convert(src, dst, (size_t)(to - from));
                else
                    memcpy(dst, src, (size_t)((to - from) * posenc_dtype_size(in->dtype)));
            }
}

/* Channels outside the window are copied, unless they are there already. */
static void copy_rest(const posenc_plan *plan, const struct side *s)
{
    if (s->in == s->out)
        return;
    int64_t first = window(plan, s->in);
    copy_channels(plan, s, 0, first);
    copy_channels(plan, s, first + plan->rotary_dim, s->in->shape[3]);
}

/*
 * INVERSE and TRANSPOSE turn by minus the angle, which only negates the sines; INVERSE also divides
 * the attention factor out, which rows carry once and the result must lose twice.
 */
static void prepare_rows(const posenc_plan *plan, int32_t direction, const float *cos,
                         const float *sin, size_t count, float *new_cos, float *new_sin)
{
    double a = plan->attention_factor, scale = direction == POSENC_INVERSE ? 1 / (a * a) : 1;
    for (size_t i = 0; i < count; i++) {
        new_cos[i] = (float)((double)cos[i] * scale);
        new_sin[i] = (float)((double)sin[i] * -scale);
    }
}

enum { CHUNK_PAIRS = 256, CHUNK_FLOATS = 8192 }; /* 32 KiB of rows on the stack */

/* Each row goes through `prepare_rows` into a buffer, a few pairs at a time. */
static void rotate_turned(const posenc_plan *plan, int32_t direction, const struct side *side,
                          const struct stretch *whole, int ahead)
{
    float cos[CHUNK_PAIRS], sin[CHUNK_PAIRS];
    struct stretch w = *whole;
    w.tokens = 1;
    w.cos = cos;
    w.sin = sin;
    for (size_t t = 0; t < whole->tokens; t++, w.token++)
        for (size_t i = 0; i < whole->count; i += CHUNK_PAIRS) {
            ptrdiff_t at = (ptrdiff_t)t * whole->row_stride + (ptrdiff_t)i;
            w.first = whole->first + i;
            w.count = whole->count - i < CHUNK_PAIRS ? whole->count - i : CHUNK_PAIRS;
            prepare_rows(plan, direction, whole->cos + at, whole->sin + at, w.count, cos, sin);
            rotate_pairs(plan, side, &w, ahead);
        }
}

static void rotate_stretch(const posenc_plan *plan, int32_t direction, const struct side *side,
                           const struct stretch *w, int ahead)
{
    if (direction == POSENC_FORWARD)
        rotate_pairs(plan, side, w, ahead);
    else
        rotate_turned(plan, direction, side, w, ahead);
}

static int reads_ahead(const posenc_plan *plan, const struct side side[2])
{
    int64_t bytes = 0;
    for (int k = 0; k < 2; k++) {
        const posenc_tensor *t = side[k].in;
        if (t)
            bytes += t->shape[0] * t->shape[1] * t->shape[2] * plan->rotary_dim *
                     posenc_dtype_size(t->dtype);
    }
    return bytes > AHEAD_BYTES;
}

static int32_t fail_rows(const posenc_plan *plan, const posenc_tensor *rows, posenc_error *error)
{
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "rows is [%d, %d, %d, %d] of dtype %d: must be [batch, tokens, 1, %d] of "
                       "POSENC_F32",
                       rows->shape[0], rows->shape[1], rows->shape[2], rows->shape[3],
                       (int64_t)rows->dtype, (int64_t)plan->rotary_dim);
}

static int32_t check_rows(const posenc_plan *plan, const struct side side[2],
                          const posenc_tensor *rows, posenc_error *error)
{
    struct posenc_view view;
    int32_t status = posenc_view_is_plain(&view, rows, "rows")
                         ? POSENC_OK
                         : posenc_view_check(&view, rows, "rows", error);
    if (status)
        return status;
    if (rows->dtype != POSENC_F32 || rows->shape[2] != 1 || rows->shape[3] != plan->rotary_dim)
        return fail_rows(plan, rows, error);
    for (int k = 0; k < 2 && !status; k++) {
        const posenc_tensor *t = side[k].in;
        if (!t)
            continue;
        if (rows->shape[0] != 1 && rows->shape[0] != t->shape[0])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "rows.shape[0] is %d: must be 1 or the batch of %s (%d)",
                               rows->shape[0], side[k].in_view.name, t->shape[0]);
        if (rows->shape[1] != t->shape[1])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "rows.shape[1] is %d: must be the tokens of %s (%d)",
                               rows->shape[1], side[k].in_view.name, t->shape[1]);
        status = posenc_disjoint_check(&side[k].out_view, &view, error);
    }
    return status;
}

static void rotate_by_rows(const posenc_plan *plan, int32_t direction, const posenc_tensor *rows,
                           const struct side *side, int ahead)
{
    int64_t next = step(rows, 0);
    struct stretch w = {
        .tokens = (size_t)side->in->shape[1],
        .count = (size_t)plan->pairs,
        .row_stride = step(rows, 1),
    };
    copy_rest(plan, side);
    for (; w.batch < side->in->shape[0]; w.batch++) {
        w.cos = (const float *)rows->data + w.batch * next;
        w.sin = w.cos + plan->pairs;
        rotate_stretch(plan, direction, side, &w, ahead);
    }
}

int32_t posenc_rotate(const posenc_plan *plan, int32_t direction, const posenc_tensor *rows,
                      const posenc_tensor *q, const posenc_tensor *q_out, const posenc_tensor *k,
                      const posenc_tensor *k_out, posenc_error *error)
{
    const struct tensors tensors = {q, q_out, k, k_out};
    struct side side[2];
    int32_t status = check_all(plan, direction, &tensors, side, error);
    if (!status)
        status = check_rows(plan, side, rows, error);
    if (status)
        return status;
    int ahead = reads_ahead(plan, side);
    for (int i = 0; i < 2; i++)
        if (side[i].in && !posenc_tensor_is_empty(side[i].in))
            rotate_by_rows(plan, direction, rows, &side[i], ahead);
    return POSENC_OK;
}

/* Tokens of one batch row, in stretches whose rows fit the stack. */
static void rope_batch_row(const posenc_plan *plan, int32_t direction,
                           const posenc_positions *positions, const struct side side[2], int64_t b,
                           int64_t tokens, int ahead)
{
    float scratch[CHUNK_FLOATS];
    size_t pairs = (size_t)plan->pairs;
    for (size_t first = 0; first < pairs; first += CHUNK_PAIRS) {
        size_t count = pairs - first < CHUNK_PAIRS ? pairs - first : CHUNK_PAIRS;
        /* At most 64 and at least 16 tokens, in whole blocks of the row tables. */
        int64_t fits = CHUNK_FLOATS / (int64_t)(2 * count), step = fits > 64 ? 64 : fits / 16 * 16;
        struct stretch w = {
            .batch = b,
            .first = first,
            .count = count,
            .cos = scratch,
            .sin = scratch + count,
            .row_stride = (ptrdiff_t)(2 * count),
        };
        for (; w.token < tokens; w.token += step) {
            w.tokens = (size_t)(tokens - w.token < step ? tokens - w.token : step);
            posenc_rows_fill(plan, positions, b, w.token, w.tokens, first, count, scratch,
                             scratch + count, w.row_stride);
            for (int i = 0; i < 2; i++)
                if (side[i].in)
                    rotate_stretch(plan, direction, &side[i], &w, ahead);
        }
    }
}

int32_t posenc_rope(const posenc_plan *plan, int32_t direction, const posenc_positions *positions,
                    const posenc_tensor *q, const posenc_tensor *q_out, const posenc_tensor *k,
                    const posenc_tensor *k_out, posenc_error *error)
{
    const struct tensors tensors = {q, q_out, k, k_out};
    struct side side[2];
    int32_t status = check_all(plan, direction, &tensors, side, error);
    if (status)
        return status;
    for (int d = 0; q && k && d < 2; d++)
        if (q->shape[d] != k->shape[d])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "k.shape[%d] is %d: must be %d as in q", (int64_t)d, k->shape[d],
                               q->shape[d]);
    const posenc_tensor *t = q ? q : k;
    status = posenc_positions_check(positions, t->shape[0], t->shape[1], &plan->range, error);
    for (int i = 0; i < 2 && !status; i++)
        if (side[i].in)
            status = posenc_positions_apart(positions, t->shape[0], t->shape[1], &side[i].out_view,
                                            error);
    if (status)
        return status;
    int ahead = reads_ahead(plan, side);
    for (int i = 0; i < 2; i++)
        if (side[i].in)
            copy_rest(plan, &side[i]);
    for (int64_t b = 0; b < t->shape[0]; b++)
        rope_batch_row(plan, direction, positions, side, b, t->shape[1], ahead);
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
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL");
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
