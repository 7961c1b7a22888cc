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

/* The queries [first, end) of a view, which may have one row for all. */
static posenc_tensor part(const posenc_tensor *whole, int64_t first, int64_t end)
{
    posenc_tensor t = *whole;
    if (t.shape[1] == 1)
        return t;
    t.shape[1] = end - first;
    t.data = (char *)t.data + (size_t)(first * t.stride[1]) * tool_dtype_size(t.dtype);
    return t;
}

static int call(const struct attend_work *work, const posenc_attention_params *params,
                const posenc_tensor *q, const posenc_tensor *out)
{
    const char *const *path = work->request->path;
    posenc_error error = {0, ""};
    char files[256];
    if (!posenc_attention(params, q, &work->tensor[ATTEND_K], &work->tensor[ATTEND_V], out, &error))
        return TOOL_OK;
    snprintf(files, sizeof files, "%s, %s, %s", path[ATTEND_Q], path[ATTEND_K], path[ATTEND_V]);
    return tool_fail_library(files, &error);
}

static int run_block(const struct attend_work *work, int64_t first, int64_t end, int64_t row)
{
    posenc_attention_params p = work->params;
    posenc_tensor q = part(&work->tensor[ATTEND_Q], first, end);
    posenc_tensor out = part(&work->tensor[ATTEND_OUT], first, end);
    posenc_tensor bias, query_rows, temperature;
    int64_t in_block = row - first;
    p.align = POSENC_ALIGN_OFFSET;
    p.query_offset = p.first_key + work->tensor[ATTEND_K].shape[1] -
                     work->tensor[ATTEND_Q].shape[1] + first;
    if (p.bias) {
        bias = part(p.bias, first, end);
        p.bias = &bias;
    }
    if (p.query_rows) {
        query_rows = part(p.query_rows, first, end);
        p.query_rows = &query_rows;
    }
    if (p.temperature) {
        temperature = part(p.temperature, first, end);
        p.temperature = &temperature;
    }
    if (in_block >= 0 && row < end && work->weights.shape[3]) {
        p.weights = &work->weights;
        p.weight_rows = &in_block;
    }
    return call(work, &p, &q, &out);
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
        int64_t end = queries - first < size ? queries : first + size;
        code = run_block(work, first, end, row);
        first = end;
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
        return call(work, &work->params, q, &work->tensor[ATTEND_OUT]);
    if (!code && weights)
        code = attend_floats(&work->weights, q->shape[0], 1, q->shape[2], k->shape[1]);
    return code ? code : run_blocks(work, row);
}
