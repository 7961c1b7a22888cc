/* SPDX-License-Identifier: MIT */
/* Checks on views: their own form, and which memory they share. */
#include "tensor.h"

#include "error.h"

/* No view may span more bytes than this: sums of a few such numbers cannot overflow. */
#define MAX_SPAN (INT64_C(1) << 60)

void posenc_tensor_contiguous(posenc_tensor *tensor, void *data, int32_t dtype, int64_t batch,
                              int64_t tokens, int64_t heads, int64_t channels)
{
    /* Unsigned products wrap without undefined behaviour; the call that uses the view refuses them. */
    uint64_t row = (uint64_t)channels, token = (uint64_t)heads * row;
    *tensor = (posenc_tensor){
        .data = data,
        .dtype = dtype,
        .shape = {batch, tokens, heads, channels},
        .stride = {(int64_t)((uint64_t)tokens * token), (int64_t)token, (int64_t)row, 1},
    };
}

/* The bytes from the first element that outer dimension `d` reaches at its end; *fits turns 0 when
 * that does not fit. */
static int64_t reach(const posenc_tensor *t, int d, int *fits)
{
    int64_t bytes;
    if (t->shape[d] <= 1)
        return 0;
    if (__builtin_mul_overflow(t->shape[d] - 1, t->stride[d], &bytes) ||
        __builtin_mul_overflow(bytes, posenc_dtype_size(t->dtype), &bytes) || bytes > MAX_SPAN ||
        bytes < -MAX_SPAN) {
        *fits = 0;
        return 0;
    }
    return bytes;
}

/* Where a view begins and ends, in bytes from data. */
struct span {
    int64_t low, high;
};

static struct span span_of(const posenc_tensor *t, int *fits)
{
    struct span s = {0, t->shape[3] * posenc_dtype_size(t->dtype)};
    for (int d = 0; d < 3; d++) {
        int64_t r = reach(t, d, fits);
        if (r < 0)
            s.low += r;
        else
            s.high += r;
    }
    return s;
}

static int32_t check_memory(const posenc_tensor *t, const char *name, posenc_error *error)
{
    uintptr_t data = (uintptr_t)t->data;
    int fits = 1;
    if (data % (uintptr_t)posenc_dtype_size(t->dtype))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.data is not aligned to its elements of %d bytes", name,
                           posenc_dtype_size(t->dtype));
    struct span s = span_of(t, &fits);
    if (!fits || (uint64_t)-s.low > data || (uint64_t)s.high > UINTPTR_MAX - data)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s: shape [%d, %d, %d, %d] with strides [%d, %d, %d] does not fit the "
                           "address space",
                           name, t->shape[0], t->shape[1], t->shape[2], t->shape[3], t->stride[0],
                           t->stride[1], t->stride[2]);
    return POSENC_OK;
}

/* Contiguous or not, a count of elements beyond this cannot be meant. */
static int count_overflows(const posenc_tensor *t)
{
    int64_t n = t->shape[3];
    for (int d = 0; d < 3; d++)
        if (__builtin_mul_overflow(n, t->shape[d], &n))
            return 1;
    return n > MAX_SPAN / 4;
}

int32_t posenc_tensor_check(const posenc_tensor *t, const char *name, posenc_error *error)
{
    if (!t)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL", name);
    if (t->dtype < POSENC_F32 || t->dtype > POSENC_BF16)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.dtype is %d: must be POSENC_F32, POSENC_F16 or POSENC_BF16", name,
                           (int64_t)t->dtype);
    for (int d = 0; d < 4; d++)
        if (t->shape[d] < (d == 3))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.shape[%d] is %d: must be >= %d",
                               name, (int64_t)d, t->shape[d], (int64_t)(d == 3));
    if (t->shape[3] > 1 && t->stride[3] != 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.stride[3] is %d: channels must lie side by side (1)", name,
                           t->stride[3]);
    if (count_overflows(t))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.shape [%d, %d, %d, %d] has too many elements", name, t->shape[0],
                           t->shape[1], t->shape[2], t->shape[3]);
    if (posenc_tensor_is_empty(t))
        return POSENC_OK;
    if (!t->data)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.data is NULL", name);
    return check_memory(t, name, error);
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

int posenc_views_overlap(const posenc_tensor *a, const posenc_tensor *b)
{
    int fits = 1;
    if (posenc_tensor_is_empty(a) || posenc_tensor_is_empty(b))
        return 0;
    struct span sa = span_of(a, &fits), sb = span_of(b, &fits);
    uintptr_t pa = (uintptr_t)a->data, pb = (uintptr_t)b->data;
    if (pa + (uintptr_t)sa.high <= pb + (uintptr_t)sb.low ||
        pb + (uintptr_t)sb.high <= pa + (uintptr_t)sa.low)
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
    return find(&s, 0, (int64_t)(pa - pb), 0);
}

int posenc_view_self_overlaps(const posenc_tensor *t)
{
    if (posenc_tensor_is_empty(t))
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
    return s.count > 0 && find(&s, 0, 0, 0);
}

int32_t posenc_output_check(const posenc_tensor *t, const char *name, posenc_error *error)
{
    int32_t status = posenc_tensor_check(t, name, error);
    if (status == POSENC_OK && posenc_view_self_overlaps(t))
        return posenc_fail(error, POSENC_ERROR_OVERLAP,
                           "%s: elements of shape [%d, %d, %d, %d] with strides [%d, %d, %d] share "
                           "memory, so the view cannot be written",
                           name, t->shape[0], t->shape[1], t->shape[2], t->shape[3], t->stride[0],
                           t->stride[1], t->stride[2]);
    return status;
}

int32_t posenc_disjoint_check(const posenc_tensor *a, const char *a_name, const posenc_tensor *b,
                              const char *b_name, posenc_error *error)
{
    if (a && b && posenc_views_overlap(a, b))
        return posenc_fail(error, POSENC_ERROR_OVERLAP, "%s and %s share memory", a_name, b_name);
    return POSENC_OK;
}
