/* SPDX-License-Identifier: MIT */
/* posenc attend: the calls. Blocks of queries have the bits of one call, and let progress show. */
#include "attend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Multiplications of a block, about; its queries. */
#define BLOCK_WORK 0x1p30
enum { BLOCK_LEAST = 32 };

int attend_floats(posenc_tensor *tensor, int64_t batch, int64_t tokens, int64_t heads,
                  int64_t channels)
{
    int64_t count, bytes;
    if (__builtin_mul_overflow(batch, tokens, &count) ||
        __builtin_mul_overflow(count, heads, &count) ||
        __builtin_mul_overflow(count, channels, &count) ||
        __builtin_mul_overflow(count, (int64_t)sizeof(float), &bytes) || bytes >= PTRDIFF_MAX)
        return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    void *data = calloc((size_t)bytes + 1, 1);
    posenc_tensor_contiguous(tensor, data, POSENC_F32, batch, tokens, heads, channels);
    return data ? TOOL_OK : tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
}

static int make_result(struct attend_work *work)
{
    const posenc_tensor *q = &work->tensor[ATTEND_Q], *v = &work->tensor[ATTEND_V];
    struct npy *array = &work->array[ATTEND_OUT];
    int32_t dtype = work->request->types.dtype ? work->request->types.dtype : q->dtype;
    *array = work->array[ATTEND_Q];
    array->shape[array->rank - 1] = v->shape[3];
    /* The file holds all elements of q, so their number fits, and that of its rows. */
    int64_t rows = (int64_t)array->count / q->shape[3], count;
    int fits = !__builtin_mul_overflow(rows, v->shape[3], &count) && (uint64_t)count < SIZE_MAX / 8;
    array->count = fits ? (size_t)count : 0;
    array->data = fits ? malloc(array->count * tool_dtype_size(dtype) + 1) : NULL;
    if (!array->data)
        return tool_fail(TOOL_SYSTEM, "%s: %s", work->request->path[ATTEND_OUT], strerror(ENOMEM));
    posenc_tensor_contiguous(&work->tensor[ATTEND_OUT], array->data, dtype, q->shape[0],
                             q->shape[1], q->shape[2], v->shape[3]);
    return TOOL_OK;
}

/* The row whose weights are asked for, counted from the front. */
static int settle_row(const struct attend_work *work, int64_t *row)
{
    int64_t queries = work->tensor[ATTEND_Q].shape[1];
    *row = work->request->weights;
    if (*row < 0 && *row >= -queries)
        *row += queries;
    if (*row >= 0 && *row < queries)
        return TOOL_OK;
    return tool_fail(TOOL_REFUSED, "%s: --weights is %lld: must be a row of its %lld queries",
                     work->request->path[ATTEND_Q], (long long)work->request->weights,
                     (long long)queries);
}

static posenc_tensor part(const posenc_tensor *whole, int dimension, int64_t first, int64_t end)
{
    posenc_tensor t = *whole;
    t.shape[dimension] = end - first;
    t.data = (char *)t.data + (size_t)(first * t.stride[dimension]) * tool_dtype_size(t.dtype);
    return t;
}

/* The same of a view that may have one row for all queries. */
static posenc_tensor rows_of(const posenc_tensor *whole, int64_t first, int64_t end)
{
    return whole->shape[1] == 1 ? *whole : part(whole, 1, first, end);
}

/* Queries [first, end) and the keys that they may see. */
struct block {
    int64_t first, end, low, high;
};

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* A block ends with the chunk of its first query. */
static struct block next_block(const struct attend_work *work, int64_t first, int64_t size)
{
    int64_t queries = work->tensor[ATTEND_Q].shape[1], keys = work->tensor[ATTEND_K].shape[1];
    struct block b = {first, queries - first < size ? queries : first + size, 0, keys};
    if (!work->chunk)
        return b;
    int64_t at = attend_first_position(work), start = work->request->start;
    int64_t from = floor_divide(at + first, work->chunk) * work->chunk;
    int64_t last = from + work->chunk - at;
    b.end = last < b.end ? last : b.end;
    b.low = from - start > 0 ? from - start : 0;
    b.high = from + work->chunk - start < keys ? from + work->chunk - start : keys;
    if (b.high <= b.low)
        b.low = b.high = 0;
    return b;
}

static int call(const struct attend_work *work, const posenc_attention_params *params,
                const posenc_tensor *q, const posenc_tensor *k, const posenc_tensor *v,
                const posenc_tensor *out)
{
    const char *const *path = work->request->path;
    posenc_error error = {0, ""};
    char files[256];
    if (!posenc_attention(params, q, k, v, out, &error))
        return TOOL_OK;
    snprintf(files, sizeof files, "%s, %s, %s", path[ATTEND_Q], path[ATTEND_K], path[ATTEND_V]);
    return tool_fail_library(files, &error);
}

static int run_block(const struct attend_work *work, const struct block *b, int64_t row)
{
    posenc_attention_params p = work->params;
    posenc_tensor q = part(&work->tensor[ATTEND_Q], 1, b->first, b->end);
    posenc_tensor out = part(&work->tensor[ATTEND_OUT], 1, b->first, b->end);
    posenc_tensor k = part(&work->tensor[ATTEND_K], 1, b->low, b->high);
    posenc_tensor v = part(&work->tensor[ATTEND_V], 1, b->low, b->high);
    posenc_tensor bias, query_rows, key_rows, temperature, weights;
    int64_t in_block = row - b->first;
    p.align = POSENC_ALIGN_OFFSET;
    p.query_offset = work->tensor[ATTEND_K].shape[1] - work->tensor[ATTEND_Q].shape[1] + b->first;
    p.first_key = b->low;
    if (p.bias) {
        bias = rows_of(p.bias, b->first, b->end);
        bias = part(&bias, 3, b->low, b->high);
        p.bias = &bias;
    }
    if (p.rope) {
        query_rows = part(&work->query_rows, 1, b->first, b->end);
        key_rows = part(&work->key_rows, 1, b->low, b->high);
        p.query_rows = &query_rows;
        p.key_rows = &key_rows;
    }
    if (p.temperature) {
        temperature = rows_of(p.temperature, b->first, b->end);
        p.temperature = &temperature;
    }
    if (in_block >= 0 && row < b->end && b->high > b->low) {
        weights = part(&work->weights, 3, b->low, b->high);
        p.weights = &weights;
        p.weight_rows = &in_block;
    }
    return call(work, &p, &q, &k, &v, &out);
}

static int run_blocks(struct attend_work *work, int64_t row)
{
    const posenc_tensor *q = &work->tensor[ATTEND_Q], *k = &work->tensor[ATTEND_K];
    int64_t queries = q->shape[1], values = work->tensor[ATTEND_V].shape[3];
    double each = (double)q->shape[0] * (double)q->shape[2] * (double)(k->shape[1] + 1) *
                  (double)(q->shape[3] + values);
    double most = BLOCK_WORK / each < (double)queries ? BLOCK_WORK / each : (double)queries;
    int64_t size = ((int64_t)most / BLOCK_LEAST + 1) * BLOCK_LEAST;
    size_t bytes = 0;
    int code = TOOL_OK;
    char said[60];
    /* Without its memory a call is slower, no more. */
    if (!posenc_attention_workspace(size, q->shape[2], k->shape[2], q->shape[3], values, &bytes,
                                    NULL))
        work->params.workspace = bytes ? malloc(bytes) : NULL;
    work->params.workspace_size = work->params.workspace ? bytes : 0;
    for (int64_t first = 0; first < queries && !code;) {
        struct block b = next_block(work, first, size);
        code = run_block(work, &b, row);
        first = b.end;
        snprintf(said, sizeof said, "attend: query %lld of %lld", (long long)first,
                 (long long)queries);
        tool_progress(said);
    }
    tool_progress(NULL);
    free(work->params.workspace);
    return code;
}

int attend_run(struct attend_work *work)
{
    const posenc_tensor *q = &work->tensor[ATTEND_Q], *k = &work->tensor[ATTEND_K];
    int weights = work->request->has_weights;
    int64_t row = -1;
    tool_progress("attend");
    int code = make_result(work);
    if (!code && weights)
        code = settle_row(work, &row);
    /* A call without results checks its arguments, and may claim any number of tokens. */
    if (!code && !work->array[ATTEND_OUT].count)
        return call(work, &work->params, q, k, &work->tensor[ATTEND_V], &work->tensor[ATTEND_OUT]);
    if (!code && weights)
        code = attend_floats(&work->weights, q->shape[0], 1, q->shape[2], k->shape[1]);
    return code ? code : run_blocks(work, row);
}
