/* SPDX-License-Identifier: MIT */
/* Rotation of Q and K: by rows that exist, by rows made on the way, and for contiguous arrays. */
#include "error.h"
#include "plan.h"
#include "tensor.h"

/* Calls that touch more than this many bytes read ahead: the data cannot be in the nearer caches. */
enum { AHEAD_BYTES = 1 << 20 };

/* One of Q and K. */
struct side {
    const posenc_tensor *in, *out;
    const char *in_name, *out_name;
};

static int32_t check_side(const posenc_plan *plan, const struct side *s, posenc_error *error)
{
    int in_place = s->in == s->out;
    int32_t status = in_place ? posenc_output_check(s->in, s->in_name, error)
                              : posenc_tensor_check(s->in, s->in_name, error);
    if (status)
        return status;
    if (s->in->shape[3] != plan->head_dim && s->in->shape[3] != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.shape[3] is %d: must be the plan's head_dim (%d) or rotary_dim (%d)",
                           s->in_name, s->in->shape[3], (int64_t)plan->head_dim,
                           (int64_t)plan->rotary_dim);
    if (in_place)
        return POSENC_OK;
    status = posenc_output_check(s->out, s->out_name, error);
    if (status)
        return status;
    for (int d = 0; d < 4; d++)
        if (s->out->shape[d] != s->in->shape[d])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.shape[%d] is %d: must be %d as in %s",
                               s->out_name, (int64_t)d, s->out->shape[d], s->in->shape[d], s->in_name);
    return posenc_views_equal(s->in, s->out)
               ? POSENC_OK
               : posenc_disjoint_check(s->out, s->out_name, s->in, s->in_name, error);
}

/* What is written must not be read or written through any other argument. */
static int32_t check_sharing(const struct side side[2], const posenc_tensor *rows,
                             posenc_error *error)
{
    int32_t status = POSENC_OK;
    for (int i = 0; i < 2 && !status; i++) {
        const struct side *s = &side[i], *other = &side[1 - i];
        if (!s->in)
            continue;
        if (rows)
            status = posenc_disjoint_check(s->out, s->out_name, rows, "rows", error);
        if (!status && other->in)
            status = posenc_disjoint_check(s->out, s->out_name, other->in, other->in_name, error);
        if (!status && other->in && i == 0 && other->out != other->in)
            status = posenc_disjoint_check(s->out, s->out_name, other->out, other->out_name, error);
    }
    return status;
}

/* An output that is absent or the same view means in place; afterwards that is pointer equality. */
static struct side make_side(const posenc_tensor *in, const posenc_tensor *out, const char *in_name,
                             const char *out_name)
{
    return (struct side){in, out ? out : in, in_name, out_name};
}

static int32_t check_all(const posenc_plan *plan, int32_t direction, const struct side side[2],
                         posenc_error *error)
{
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL");
    if (direction < POSENC_FORWARD || direction > POSENC_TRANSPOSE)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "direction is %d: must be POSENC_FORWARD, _INVERSE or _TRANSPOSE",
                           (int64_t)direction);
    if (!side[0].in && !side[1].in && !side[0].out && !side[1].out)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "q is NULL and k is NULL: one must be given");
    for (int i = 0; i < 2; i++) {
        if (!side[i].in && side[i].out)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is given but %s is NULL",
                               side[i].out_name, side[i].in_name);
        int32_t status = side[i].in ? check_side(plan, &side[i], error) : POSENC_OK;
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* Where a stretch of tokens of one batch row lies, and its rows. */
struct stretch {
    int64_t batch, token;
    size_t tokens;
    size_t first, count; /* pairs */
    const float *cos, *sin;
    ptrdiff_t row_stride;
};

static void *element(const posenc_tensor *t, int64_t b, int64_t token, int64_t channel)
{
    int64_t at = b * t->stride[0] + token * t->stride[1] + channel;
    return (char *)t->data + at * posenc_dtype_size(t->dtype);
}

/* The window may stand alone in the tensor: then it starts at channel 0. */
static int64_t window(const posenc_plan *plan, const posenc_tensor *t)
{
    return t->shape[3] == plan->rotary_dim ? 0 : plan->rotary_offset;
}

static void rotate_stretch(const posenc_plan *plan, const struct side *s, const struct stretch *w,
                           int ahead)
{
    int64_t spread = plan->layout == POSENC_ADJACENT ? 2 : 1;
    int64_t channel = window(plan, s->in) + (int64_t)w->first * spread;
    struct posenc_rotate_job job = {
        .src = element(s->in, w->batch, w->token, channel),
        .dst = element(s->out, w->batch, w->token, channel),
        .src_token = (ptrdiff_t)s->in->stride[1],
        .src_head = (ptrdiff_t)s->in->stride[2],
        .dst_token = (ptrdiff_t)s->out->stride[1],
        .dst_head = (ptrdiff_t)s->out->stride[2],
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
                const void *src = element(in, b, t, h * in->stride[2] + from);
                void *dst = element(out, b, t, h * out->stride[2] + from);
                if (convert)
                    convert(src, dst, (size_t)(to - from));
                else
                    memcpy(dst, src, (size_t)((to - from) * posenc_dtype_size(in->dtype)));
            }
}

/* Channels outside the window are copied, unless they are there already. */
static void copy_rest(const posenc_plan *plan, const struct side *s)
{
    if (!s->in || s->in->data == s->out->data)
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

/* Rows of the stretch go through `prepare_rows` into `scratch`, a few tokens at a time. */
static void rotate_turned(const posenc_plan *plan, int32_t direction, const struct side side[2],
                          const struct stretch *whole, int ahead)
{
    float scratch[2 * CHUNK_PAIRS];
    struct stretch w = *whole;
    w.tokens = 1;
    for (size_t t = 0; t < whole->tokens; t++)
        for (size_t i = 0; i < whole->count; i += CHUNK_PAIRS) {
            const float *cos = whole->cos + (ptrdiff_t)t * whole->row_stride + i;
            const float *sin = whole->sin + (ptrdiff_t)t * whole->row_stride + i;
            w.token = whole->token + (int64_t)t;
            w.first = whole->first + i;
            w.count = whole->count - i < CHUNK_PAIRS ? whole->count - i : CHUNK_PAIRS;
            prepare_rows(plan, direction, cos, sin, w.count, scratch, scratch + CHUNK_PAIRS);
            w.cos = scratch;
            w.sin = scratch + CHUNK_PAIRS;
            for (int k = 0; k < 2; k++)
                if (side[k].in)
                    rotate_stretch(plan, &side[k], &w, ahead);
        }
}

static void rotate_sides(const posenc_plan *plan, int32_t direction, const struct side side[2],
                         const struct stretch *w, int ahead)
{
    if (direction != POSENC_FORWARD) {
        rotate_turned(plan, direction, side, w, ahead);
        return;
    }
    for (int k = 0; k < 2; k++)
        if (side[k].in)
            rotate_stretch(plan, &side[k], w, ahead);
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

static int is_empty(const struct side side[2])
{
    return (!side[0].in || posenc_tensor_is_empty(side[0].in)) &&
           (!side[1].in || posenc_tensor_is_empty(side[1].in));
}

/* Both rotations below need the batch and the tokens of whichever tensor is there. */
static const posenc_tensor *either(const struct side side[2])
{
    return side[0].in ? side[0].in : side[1].in;
}

static int32_t check_rows(const posenc_plan *plan, const struct side side[2],
                          const posenc_tensor *rows, posenc_error *error)
{
    int32_t status = posenc_tensor_check(rows, "rows", error);
    if (status)
        return status;
    if (rows->dtype != POSENC_F32 || rows->shape[2] != 1 || rows->shape[3] != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rows is [%d, %d, %d, %d] of dtype %d: must be [batch, tokens, 1, %d] "
                           "of POSENC_F32",
                           rows->shape[0], rows->shape[1], rows->shape[2], rows->shape[3],
                           (int64_t)rows->dtype, (int64_t)plan->rotary_dim);
    for (int k = 0; k < 2; k++) {
        const posenc_tensor *t = side[k].in;
        if (t && rows->shape[0] != 1 && rows->shape[0] != t->shape[0])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "rows.shape[0] is %d: must be 1 or the batch of %s (%d)",
                               rows->shape[0], side[k].in_name, t->shape[0]);
        if (t && rows->shape[1] != t->shape[1])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "rows.shape[1] is %d: must be the tokens of %s (%d)",
                               rows->shape[1], side[k].in_name, t->shape[1]);
    }
    return POSENC_OK;
}

int32_t posenc_rotate(const posenc_plan *plan, int32_t direction, const posenc_tensor *rows,
                      const posenc_tensor *q, const posenc_tensor *q_out, const posenc_tensor *k,
                      const posenc_tensor *k_out, posenc_error *error)
{
    const struct side side[2] = {make_side(q, q_out, "q", "q_out"), make_side(k, k_out, "k", "k_out")};
    int32_t status = check_all(plan, direction, side, error);
    if (!status)
        status = check_rows(plan, side, rows, error);
    if (!status)
        status = check_sharing(side, rows, error);
    if (status || is_empty(side))
        return status;
    int ahead = reads_ahead(plan, side);
    for (int i = 0; i < 2; i++) {
        struct side one[2] = {side[i], {NULL, NULL, NULL, NULL}};
        copy_rest(plan, &side[i]);
        for (int64_t b = 0; side[i].in && b < side[i].in->shape[0]; b++) {
            const float *row = (const float *)rows->data + (rows->shape[0] > 1 ? b * rows->stride[0] : 0);
            struct stretch w = {
                .batch = b,
                .tokens = (size_t)side[i].in->shape[1],
                .count = (size_t)plan->pairs,
                .cos = row,
                .sin = row + plan->pairs,
                .row_stride = (ptrdiff_t)rows->stride[1],
            };
            rotate_sides(plan, direction, one, &w, ahead);
        }
    }
    return POSENC_OK;
}

/* Tokens of one batch row, in stretches whose rows fit the stack. */
static void rope_batch_row(const posenc_plan *plan, int32_t direction,
                           const posenc_positions *positions, const struct side side[2], int64_t b,
                           int ahead)
{
    float scratch[CHUNK_FLOATS];
    int64_t tokens = either(side)->shape[1];
    size_t pairs = (size_t)plan->pairs;
    for (size_t first = 0; first < pairs; first += CHUNK_PAIRS) {
        size_t count = pairs - first < CHUNK_PAIRS ? pairs - first : CHUNK_PAIRS;
        /* A multiple of 16 tokens where possible, so that blocks of the row tables stay whole. */
        size_t most = CHUNK_FLOATS / (2 * count), step = most > 16 ? most / 16 * 16 : most;
        step = step > 64 ? 64 : step;
        for (int64_t t = 0; t < tokens; t += (int64_t)step) {
            struct stretch w = {
                .batch = b,
                .token = t,
                .tokens = tokens - t < (int64_t)step ? (size_t)(tokens - t) : step,
                .first = first,
                .count = count,
                .cos = scratch,
                .sin = scratch + count,
                .row_stride = (ptrdiff_t)(2 * count),
            };
            posenc_rows_fill(plan, positions, b, t, w.tokens, first, count, scratch, scratch + count,
                             w.row_stride);
            rotate_sides(plan, direction, side, &w, ahead);
        }
    }
}

int32_t posenc_rope(const posenc_plan *plan, int32_t direction, const posenc_positions *positions,
                    const posenc_tensor *q, const posenc_tensor *q_out, const posenc_tensor *k,
                    const posenc_tensor *k_out, posenc_error *error)
{
    const struct side side[2] = {make_side(q, q_out, "q", "q_out"), make_side(k, k_out, "k", "k_out")};
    int32_t status = check_all(plan, direction, side, error);
    if (status)
        return status;
    for (int d = 0; q && k && d < 2; d++)
        if (q->shape[d] != k->shape[d])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "k.shape[%d] is %d: must be %d as in q",
                               (int64_t)d, k->shape[d], q->shape[d]);
    status = check_sharing(side, NULL, error);
    if (status)
        return status;
    const posenc_tensor *t = either(side);
    status = posenc_positions_check(positions, t ? t->shape[0] : 0, t ? t->shape[1] : 0, &plan->range,
                                    error);
    if (status || is_empty(side))
        return status;
    int ahead = reads_ahead(plan, side);
    for (int i = 0; i < 2; i++)
        copy_rest(plan, &side[i]);
    for (int64_t b = 0; b < t->shape[0]; b++)
        rope_batch_row(plan, direction, positions, side, b, ahead);
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
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be 0..2^62", name[i],
                               (int64_t)(count[i] >> 1));
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
