/* SPDX-License-Identifier: MIT */
/* Filling a bias from lines that its rows have in common. */
#include "bias.h"

#include "error.h"
#include "sides.h"

struct fill {
    const struct posenc_bias_source *source;
    const posenc_tensor *bias;
    int64_t offset;
    int causal;
    uint32_t masked; /* -inf */
    size_t size;
};

/* Few elements one by one, the rest by doubling what is there. */
void posenc_bias_repeat(void *to, size_t count, size_t size, uint32_t bits)
{
    enum { ONE_BY_ONE = 16 };
    char *p = to;
    size_t done = count < ONE_BY_ONE ? count : ONE_BY_ONE;
    const uint16_t half = (uint16_t)bits;
    if (size == 4)
        for (size_t i = 0; i < done; i++)
            memcpy(p + 4 * i, &bits, 4);
    else
        for (size_t i = 0; i < done; i++)
            memcpy(p + 2 * i, &half, 2);
    for (; done < count; done *= 2)
        memcpy(p + done * size, p, (count - done < done ? count - done : done) * size);
}

static int64_t clamp(int64_t x, int64_t high)
{
    return x < 0 ? 0 : x < high ? x : high;
}

/*
 * Rows from a line, each `move` bytes after the one before. Long rows are left to memcpy, which
 * may know of stores that do not read what they replace.
 */
static void copy_rows(const struct fill *f, const struct posenc_bias_tile *t, char *row,
                      const char *line, ptrdiff_t move)
{
    enum { LONG = 4096 };
    ptrdiff_t step = (ptrdiff_t)posenc_step(f->bias, 1) * (ptrdiff_t)f->size;
    size_t bytes = (size_t)t->keys * f->size;
    if (bytes < LONG)
        f->source->kernels->windows(line, move, row, step, bytes, (size_t)t->queries);
    else
        for (int64_t i = 0; i < t->queries; i++, line += move, row += step)
            memcpy(row, line, bytes);
}

/* Rows that are all the same line, cut off after the query. */
static void copy_keys(const struct fill *f, const struct posenc_bias_tile *t, char *row,
                      const char *line)
{
    ptrdiff_t step = (ptrdiff_t)posenc_step(f->bias, 1) * (ptrdiff_t)f->size;
    for (int64_t i = 0; i < t->queries; i++, row += step) {
        int64_t seen = t->keys;
        if (f->causal)
            seen = clamp(f->offset + t->query + i + 1 - t->key, t->keys);
        memcpy(row, line, (size_t)seen * f->size);
        posenc_bias_repeat(row + (size_t)seen * f->size, (size_t)(t->keys - seen), f->size,
                           f->masked);
    }
}

static void make_line(const struct fill *f, const struct posenc_bias_tile *t, int64_t head,
                      float *line)
{
    f->source->line(f->source->self, t, head, line);
    if (f->source->by_key || !f->causal)
        return;
    size_t seen = (size_t)clamp(1 - t->first, (int64_t)t->length);
    posenc_bias_repeat((char *)line + seen * f->size, t->length - seen, f->size, f->masked);
}

static void fill_tile(const struct fill *f, const struct posenc_bias_tile *t, int64_t head,
                      int64_t heads)
{
    float line[POSENC_BIAS_LINE + POSENC_BIAS_SPARE];
    const int64_t *stride = f->bias->stride;
    const ptrdiff_t size = (ptrdiff_t)f->size;
    f->source->tile(f->source->self, t);
    for (int64_t h = head; h < head + heads; h++) {
        int64_t at = t->batch * stride[0] + t->query * stride[1] + h * stride[2] + t->key;
        char *row = (char *)f->bias->data + at * size;
        make_line(f, t, h, line);
        if (f->source->by_key)
            copy_keys(f, t, row, (const char *)line);
        else
            copy_rows(f, t, row, (const char *)line + (t->queries - 1) * size, -size);
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One batch row in a group of heads. */
static void fill_heads(const struct fill *f, int64_t batch, int64_t head, int64_t heads)
{
    int64_t queries = f->bias->shape[1], keys = f->bias->shape[3];
    struct posenc_bias_tile t = {.batch = batch};
    for (t.query = 0; t.query < queries; t.query += POSENC_BIAS_QUERIES) {
        t.queries = least(queries - t.query, POSENC_BIAS_QUERIES);
        for (t.key = 0; t.key < keys; t.key += POSENC_BIAS_KEYS) {
            t.keys = least(keys - t.key, POSENC_BIAS_KEYS);
            t.first = t.key;
            t.length = (size_t)t.keys;
            if (!f->source->by_key) {
                t.first -= f->offset + t.query + t.queries - 1;
                t.length += (size_t)t.queries - 1;
            }
            fill_tile(f, &t, head, heads);
        }
    }
}

void posenc_bias_fill(const struct posenc_bias_source *source, const posenc_tensor *bias,
                      int64_t offset, int causal)
{
    static const uint32_t masked[] = {0xff800000, 0xfc00, 0xff80};
    const struct fill f = {source, bias, offset, causal, masked[bias->dtype - 1],
                           (size_t)posenc_dtype_size(bias->dtype)};
    if (posenc_tensor_is_empty(bias))
        return;
    for (int64_t h = 0; h < bias->shape[2]; h += POSENC_BIAS_HEADS) {
        int64_t heads = least(bias->shape[2] - h, POSENC_BIAS_HEADS);
        if (source->heads)
            source->heads(source->self, h, heads);
        for (int64_t b = 0; b < bias->shape[0]; b++)
            fill_heads(&f, b, h, heads);
    }
}

int32_t posenc_bias_distances(int64_t queries, int64_t keys, int64_t query_offset,
                              posenc_error *error)
{
    const int64_t end = INT64_C(1) << 31;
    if (queries <= end && keys <= end && query_offset >= -end && query_offset <= end &&
        query_offset + queries <= end + 1 && keys - query_offset <= end)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "query_offset is %d with %d queries and %d keys: every distance of a key "
                       "and a query must fit int32",
                       query_offset, queries, keys);
}

int32_t posenc_bias_apart(const struct posenc_array *array, const struct posenc_view *view,
                          posenc_error *error)
{
    const int64_t bytes = (int64_t)(array->end - array->begin);
    const posenc_tensor words = {(void *)array->begin, POSENC_F32, {bytes > 0, 1, 1, bytes / 4},
                                 {0, 0, 0, 1}};
    const struct posenc_view other = {&words, array->name, array->begin, array->end};
    return posenc_disjoint_check(view, &other, error);
}

int32_t posenc_flag_check(int32_t value, const char *name, posenc_error *error)
{
    if (value == 0 || value == 1)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be 0 or 1", name,
                       (int64_t)value);
}
