/* SPDX-License-Identifier: MIT */
/* Checks on views: their own form, and which memory they share. */
#include "tensor.h"

#include <stdlib.h>

#include "error.h"

/* No view may span more bytes than this: sums of a few such numbers cannot overflow. */
#define MAX_SPAN (INT64_C(1) << 60)

void posenc_tensor_contiguous(posenc_tensor *tensor, void *data, int32_t dtype, int64_t batch,
                              int64_t tokens, int64_t heads, int64_t channels)
{
    /* Unsigned products wrap, which is defined; the call that uses the view refuses them. */
    uint64_t row = (uint64_t)channels, token = (uint64_t)heads * row;
    *tensor = (posenc_tensor){
        .data = data,
        .dtype = dtype,
        .shape = {batch, tokens, heads, channels},
        .stride = {(int64_t)((uint64_t)tokens * token), (int64_t)token, (int64_t)row, 1},
    };
}

/*
 * Where a view begins and ends, in bytes from data. Sums of three reaches of at most MAX_SPAN fit;
 * 0 where they or the number of elements do not (a count beyond MAX_SPAN / 4 cannot be meant, even
 * if strides of 0 made it cheap).
 */
static int span_of(const posenc_tensor *t, int64_t *low, int64_t *high)
{
    int64_t size = posenc_dtype_size(t->dtype), count = t->shape[3], reach;
    *low = 0;
    if (count > MAX_SPAN / 4)
        return 0;
    *high = count * size;
    for (int d = 0; d < 3; d++) {
        if (t->shape[d] == 1)
            continue;
        if (__builtin_mul_overflow(count, t->shape[d], &count) ||
            __builtin_mul_overflow(t->shape[d] - 1, t->stride[d], &reach) ||
            reach > MAX_SPAN / 4 || reach < -MAX_SPAN / 4)
            return 0;
        *low += reach < 0 ? reach * size : 0;
        *high += reach < 0 ? 0 : reach * size;
    }
    return count <= MAX_SPAN / 4;
}

static int32_t fail_shape(const posenc_tensor *t, const char *name, posenc_error *error)
{
    for (int d = 0; d < 4; d++)
        if (t->shape[d] < (d == 3))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.shape[%d] is %d: must be >= %d",
                               name, (int64_t)d, t->shape[d], (int64_t)(d == 3));
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s.stride[3] is %d: channels must lie side by side (1)", name,
                       t->stride[3]);
}

static int32_t fail_span(const posenc_tensor *t, const char *name, posenc_error *error)
{
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s: shape [%d, %d, %d, %d] with strides [%d, %d, %d] does not fit the "
                       "address space",
                       name, t->shape[0], t->shape[1], t->shape[2], t->shape[3], t->stride[0],
                       t->stride[1], t->stride[2]);
}

static int32_t fail_null(const char *name, posenc_error *error)
{
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given", name);
}

/* All but the dtype. */
static int32_t check_view(struct posenc_view *view, const posenc_tensor *t, const char *name,
                          posenc_error *error)
{
    int64_t low, high;
    if (t->shape[0] < 0 || t->shape[1] < 0 || t->shape[2] < 0 || t->shape[3] < 1 ||
        (t->stride[3] != 1 && t->shape[3] > 1))
        return fail_shape(t, name, error);
    *view = (struct posenc_view){t, name, 0, 0};
    if (posenc_tensor_is_empty(t))
        return POSENC_OK;
    if (!span_of(t, &low, &high))
        return fail_span(t, name, error);
    uintptr_t data = (uintptr_t)t->data;
    if (!data)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.data is NULL: must be given", name);
    if (data & (uintptr_t)(posenc_dtype_size(t->dtype) - 1))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.data is not aligned to its elements of %d bytes", name,
                           posenc_dtype_size(t->dtype));
    if ((uint64_t)-low > data || (uint64_t)high > UINTPTR_MAX - data)
        return fail_span(t, name, error);
    view->begin = data - (uintptr_t)-low;
    view->end = data + (uintptr_t)high;
    return POSENC_OK;
}

int32_t posenc_view_check(struct posenc_view *view, const posenc_tensor *t, const char *name,
                          posenc_error *error)
{
    if (!t)
        return fail_null(name, error);
    if (t->dtype < POSENC_F32 || t->dtype > POSENC_BF16)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.dtype is %d: must be POSENC_F32, POSENC_F16 or POSENC_BF16", name,
                           (int64_t)t->dtype);
    return check_view(view, t, name, error);
}

int32_t posenc_data_view_check(struct posenc_view *view, const posenc_tensor *t, const char *name,
                               posenc_error *error)
{
    if (!t)
        return fail_null(name, error);
    if (t->dtype == POSENC_F64)
        return check_view(view, t, name, error);
    if (t->dtype < POSENC_F32 || t->dtype > POSENC_BF16)
        return posenc_fail(
            error, POSENC_ERROR_ARGUMENT,
            "%s.dtype is %d: must be POSENC_F32, POSENC_F16, POSENC_BF16 or POSENC_F64", name,
            (int64_t)t->dtype);
    return check_view(view, t, name, error);
}

int32_t posenc_stored_view_check(struct posenc_view *view, const posenc_tensor *t, const char *name,
                                 posenc_error *error)
{
    if (!t)
        return fail_null(name, error);
    if ((t->dtype < POSENC_F32 || t->dtype > POSENC_BF16) && t->dtype != POSENC_I8)
        return posenc_fail(
            error, POSENC_ERROR_ARGUMENT,
            "%s.dtype is %d: must be POSENC_F32, POSENC_F16, POSENC_BF16 or POSENC_I8", name,
            (int64_t)t->dtype);
    return check_view(view, t, name, error);
}

int32_t posenc_row_view_check(struct posenc_view *view, const posenc_tensor *t, const char *name,
                              posenc_error *error)
{
    if (!t)
        return fail_null(name, error);
    if (t->dtype != POSENC_F32 && t->dtype != POSENC_F64)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.dtype is %d: must be POSENC_F32 or POSENC_F64", name,
                           (int64_t)t->dtype);
    return check_view(view, t, name, error);
}

int posenc_views_equal(const posenc_tensor *a, const posenc_tensor *b)
{
    if (a->data != b->data || a->dtype != b->dtype)
        return 0;
    for (int d = 0; d < 4; d++)
        if (a->shape[d] != b->shape[d] || (a->shape[d] > 1 && a->stride[d] != b->stride[d]))
            return 0;
    return 1;
}

/*
 * Two views share a byte if some sum of x_k * stride_k, each x_k within its bounds, brings the
 * distance of their first elements into (-a_bytes, b_bytes). Strides are positive, unequal and
 * descending, so that a search over x_k from the largest stride down has few ways to go: for views
 * nested in the usual way one or two at each level.
 */
struct term {
    int64_t stride, low, high;
};

struct search {
    struct term term[6];
    int count;
    int64_t a_bytes, b_bytes;
    int allow_zero; /* 0: the all-zero solution (an element and itself) does not count */
    int budget;
};

static void add_term(struct search *s, int64_t stride, int64_t low, int64_t high)
{
    int at = 0;
    if (stride < 0) {
        int64_t swap = -low;
        stride = -stride;
        low = -high;
        high = swap;
    }
    while (at < s->count && s->term[at].stride > stride)
        at++;
    if (at < s->count && s->term[at].stride == stride) {
        s->term[at].low += low;
        s->term[at].high += high;
        return;
    }
    memmove(&s->term[at + 1], &s->term[at], (size_t)(s->count - at) * sizeof(s->term[0]));
    s->term[at] = (struct term){stride, low, high};
    s->count++;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int find(struct search *s, int k, int64_t distance, int nonzero)
{
    if (s->budget-- <= 0)
        return 1;
    if (k == s->count)
        return distance > -s->a_bytes && distance < s->b_bytes && (nonzero || s->allow_zero);
    int64_t rest_low = 0, rest_high = 0, stride = s->term[k].stride;
    for (int j = k + 1; j < s->count; j++) {
        rest_low += s->term[j].low * s->term[j].stride;
        rest_high += s->term[j].high * s->term[j].stride;
    }
    /* distance + x*stride + rest > -a_bytes and < b_bytes for some rest */
    int64_t first = floor_div(-s->a_bytes - rest_high - distance, stride) + 1;
    int64_t last = -floor_div(-(s->b_bytes - rest_low - distance), stride) - 1;
    first = first > s->term[k].low ? first : s->term[k].low;
    last = last < s->term[k].high ? last : s->term[k].high;
    for (int64_t x = first; x <= last; x++)
        if (find(s, k + 1, distance + x * stride, nonzero || x))
            return 1;
    return 0;
}

/* 1 if some byte belongs to both. Exact, so interleaved views pass; views with strides so unusual
 * that this cannot be decided in a bounded number of steps count as overlapping. */
static int overlap(const posenc_tensor *a, const posenc_tensor *b)
{
    if (posenc_tensor_is_empty(a) || posenc_tensor_is_empty(b))
        return 0;
    int64_t a_size = posenc_dtype_size(a->dtype), b_size = posenc_dtype_size(b->dtype);
    struct search s = {.a_bytes = a->shape[3] * a_size, .b_bytes = b->shape[3] * b_size,
                       .allow_zero = 1, .budget = 10000};
    for (int d = 0; d < 3; d++) {
        if (a->shape[d] > 1 && a->stride[d])
            add_term(&s, a->stride[d] * a_size, 0, a->shape[d] - 1);
        if (b->shape[d] > 1 && b->stride[d])
            add_term(&s, -b->stride[d] * b_size, 0, b->shape[d] - 1);
    }
    /* Widened first: a difference of 32-bit addresses would wrap to a large positive number. */
    return find(&s, 0, (int64_t)(uintptr_t)a->data - (int64_t)(uintptr_t)b->data, 0);
}

/* The usual view: each stride steps over all that the smaller ones reach. In elements. */
static int is_nested(const posenc_tensor *t)
{
    int64_t inner = t->shape[3], done = 0;
    for (int level = 0; level < 3; level++) {
        int least = -1;
        for (int d = 0; d < 3; d++)
            if (t->shape[d] > 1 && !(done >> d & 1) &&
                (least < 0 || llabs(t->stride[d]) < llabs(t->stride[least])))
                least = d;
        if (least < 0)
            return 1;
        if (llabs(t->stride[least]) < inner)
            return 0;
        inner += (t->shape[least] - 1) * llabs(t->stride[least]);
        done |= 1 << least;
    }
    return 1;
}

/* 1 if two elements of the view share a byte: such a view cannot be written to. */
static int overlaps_itself(const posenc_tensor *t)
{
    if (posenc_tensor_is_empty(t) || is_nested(t))
        return 0;
    int64_t size = posenc_dtype_size(t->dtype), bytes = t->shape[3] * size;
    struct search s = {.a_bytes = bytes, .b_bytes = bytes, .allow_zero = 0, .budget = 10000};
    for (int d = 0; d < 3; d++) {
        int before = s.count;
        if (t->shape[d] <= 1)
            continue;
        if (t->stride[d] == 0)
            return 1;
        add_term(&s, t->stride[d] * size, -(t->shape[d] - 1), t->shape[d] - 1);
        if (s.count == before) /* two dimensions with one stride reach the same element */
            return 1;
    }
    return find(&s, 0, 0, 0);
}

int32_t posenc_writable_check(const struct posenc_view *view, posenc_error *error)
{
    const posenc_tensor *t = view->tensor;
    if (!overlaps_itself(t))
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_OVERLAP,
                       "%s: elements of shape [%d, %d, %d, %d] with strides [%d, %d, %d] share "
                       "memory, so the view cannot be written",
                       view->name, t->shape[0], t->shape[1], t->shape[2], t->shape[3], t->stride[0],
                       t->stride[1], t->stride[2]);
}

int32_t posenc_overlap_error(const struct posenc_view *a, const struct posenc_view *b,
                             posenc_error *error)
{
    if (!overlap(a->tensor, b->tensor))
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_OVERLAP, "%s and %s share memory: must lie apart",
                       a->name, b->name);
}
