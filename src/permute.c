/* SPDX-License-Identifier: MIT */
/* Between the pair layouts: whole rows or channels move, bit for bit. */
#include "permute.h"

#include <stdlib.h>

#include "error.h"
#include "tensor.h"

enum { MAX_ROTARY_DIM = 65536 };

static int32_t check_window(int64_t head_dim, const char *head_dim_name, int64_t rotary_dim,
                            int64_t rotary_offset, int32_t to, posenc_error *error)
{
    if (to != POSENC_ADJACENT && to != POSENC_SPLIT_HALF)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "to is %d: must be POSENC_ADJACENT or POSENC_SPLIT_HALF", (int64_t)to);
    if (rotary_dim < 2 || rotary_dim % 2 || rotary_dim > head_dim || rotary_dim > MAX_ROTARY_DIM)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rotary_dim is %d: must be even, 2..%d and at most %s (%d)", rotary_dim,
                           (int64_t)MAX_ROTARY_DIM, head_dim_name, head_dim);
    if (rotary_offset < 0 || rotary_offset > head_dim - rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rotary_offset is %d: must be 0..%s - rotary_dim (%d)", rotary_offset,
                           head_dim_name, head_dim - rotary_dim);
    return POSENC_OK;
}

/* Sizes that no memory has read better as a large number than as a negative one. */
static int64_t shown(size_t n)
{
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int32_t check_rows(const void *in, const void *out, size_t heads, size_t head_dim,
                          size_t row_bytes, posenc_error *error)
{
    size_t bytes;
    if (row_bytes < 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "row_bytes is 0: must be >= 1");
    if (__builtin_mul_overflow(heads, head_dim, &bytes) ||
        __builtin_mul_overflow(bytes, row_bytes, &bytes) || bytes > PTRDIFF_MAX ||
        bytes > UINTPTR_MAX - (uintptr_t)in || bytes > UINTPTR_MAX - (uintptr_t)out)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "heads is %d, head_dim %d, row_bytes %d: the product does not fit the "
                           "address space",
                           shown(heads), shown(head_dim), shown(row_bytes));
    if (heads && !in)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "in is NULL: must be given");
    if (in != out && (uintptr_t)in < (uintptr_t)out + bytes &&
        (uintptr_t)out < (uintptr_t)in + bytes)
        return posenc_fail(error, POSENC_ERROR_OVERLAP,
                           "in and out share memory: must lie apart or be the same");
    return POSENC_OK;
}

int32_t posenc_permute_rows(const void *in, void *out, size_t heads, size_t head_dim,
                            size_t rotary_dim, size_t rotary_offset, size_t row_bytes, int32_t to,
                            posenc_error *error)
{
    void *target = out ? out : (void *)(uintptr_t)in;
    int32_t status = check_window(shown(head_dim), "head_dim", shown(rotary_dim),
                                  shown(rotary_offset), to, error);
    if (!status)
        status = check_rows(in, target, heads, head_dim, row_bytes, error);
    if (status || !heads)
        return status;
    const struct posenc_permutation p = {
        .to = to,
        .rotary_dim = rotary_dim,
        .row_bytes = row_bytes,
        .before = rotary_offset * row_bytes,
        .after = (head_dim - rotary_dim - rotary_offset) * row_bytes,
        .call_bytes = heads * head_dim * row_bytes,
    };
    const ptrdiff_t head = (ptrdiff_t)(head_dim * row_bytes);
    posenc_permute_heads(&p, &(struct posenc_permute_job){in, target, head, head, heads,
                                                          rotary_dim / 2, 0, 0});
    return POSENC_OK;
}

static int32_t check_outputs(const struct posenc_view *in, const posenc_tensor *out,
                             struct posenc_view *view, posenc_error *error)
{
    const posenc_tensor *t = in->tensor;
    int32_t status = posenc_data_view_check(view, out, "out", error);
    if (status)
        return status;
    if (out->dtype != t->dtype)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "out.dtype is %d: must be %d as in in",
                           (int64_t)out->dtype, (int64_t)t->dtype);
    for (int d = 0; d < 4; d++)
        if (out->shape[d] != t->shape[d])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "out.shape[%d] is %d: must be %d as in in", (int64_t)d,
                               out->shape[d], t->shape[d]);
    return posenc_views_equal(t, out) ? POSENC_OK : posenc_disjoint_check(view, in, error);
}

static ptrdiff_t byte_step(const posenc_tensor *t, int d)
{
    return t->shape[d] > 1 ? (ptrdiff_t)(t->stride[d] * posenc_dtype_size(t->dtype)) : 0;
}

/* The outer dimension whose steps are least, so that memory is walked through in its own order. */
static int innermost(const posenc_tensor *t)
{
    int least = 2;
    for (int d = 1; d >= 0; d--)
        if (t->shape[d] > 1 &&
            (t->shape[least] <= 1 || llabs(t->stride[d]) < llabs(t->stride[least])))
            least = d;
    return least;
}

/* 1 if stepping on in dimension `outer` is stepping on past the last of `inner`. */
static int continues(const posenc_tensor *t, int outer, int inner)
{
    return byte_step(t, outer) == t->shape[inner] * byte_step(t, inner);
}

/* Both views with dimensions joined that go on in each other: fewer and longer jobs. */
static void join(posenc_tensor *in, posenc_tensor *out, int outer, int inner)
{
    if (in->shape[outer] == 1 || in->shape[inner] == 1 || !continues(in, outer, inner) ||
        !continues(out, outer, inner))
        return;
    in->shape[inner] *= in->shape[outer];
    out->shape[inner] = in->shape[inner];
    in->shape[outer] = out->shape[outer] = 1;
}

static void permute_view(const struct posenc_permutation *p, posenc_tensor in_view,
                         posenc_tensor out_view)
{
    posenc_tensor *in = &in_view, *out = &out_view;
    const int inner = innermost(out);
    const int x = inner == 0 ? 1 : 0, y = inner == 2 ? 1 : 2;
    for (int again = 0; again < 2; again++) {
        join(in, out, x, inner);
        join(in, out, y, inner);
    }
    for (int64_t a = 0; a < in->shape[x]; a++)
        for (int64_t b = 0; b < in->shape[y]; b++) {
            const struct posenc_permute_job job = {
                .src = (char *)in->data + a * byte_step(in, x) + b * byte_step(in, y),
                .dst = (char *)out->data + a * byte_step(out, x) + b * byte_step(out, y),
                .src_head = byte_step(in, inner),
                .dst_head = byte_step(out, inner),
                .heads = (size_t)in->shape[inner],
                .pairs = p->rotary_dim / 2,
            };
            posenc_permute_heads(p, &job);
        }
}

int32_t posenc_permute_channels(const posenc_tensor *in, const posenc_tensor *out,
                                int32_t rotary_dim, int32_t rotary_offset, int32_t to,
                                posenc_error *error)
{
    struct posenc_view in_view, out_view;
    int32_t status = posenc_data_view_check(&in_view, in, "in", error);
    if (!status)
        status = check_window(in->shape[3], "in.shape[3]", rotary_dim, rotary_offset, to, error);
    out_view = in_view;
    if (!status && out && out != in)
        status = check_outputs(&in_view, out, &out_view, error);
    if (!status)
        status = posenc_writable_check(&out_view, error);
    if (status || posenc_tensor_is_empty(in))
        return status;
    const size_t size = (size_t)posenc_dtype_size(in->dtype);
    const struct posenc_permutation p = {
        .to = to,
        .rotary_dim = (size_t)rotary_dim,
        .row_bytes = size,
        .before = (size_t)rotary_offset * size,
        .after = (size_t)(in->shape[3] - rotary_dim - rotary_offset) * size,
        .call_bytes = (size_t)(in->shape[0] * in->shape[1] * in->shape[2] * in->shape[3]) * size,
    };
    permute_view(&p, *in, out ? *out : *in);
    return POSENC_OK;
}
