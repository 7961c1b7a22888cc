/* SPDX-License-Identifier: MIT */
/* posenc attend: its input arrays. */
#include "attend.h"
#include "float16.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float value_at(const void *data, int32_t dtype, size_t i)
{
    const uint16_t *half = data;
    return dtype == POSENC_F32   ? ((const float *)data)[i]
           : dtype == POSENC_F16 ? posenc_f16_to_f32(half[i])
                                 : posenc_bf16_to_f32(half[i]);
}

/* Sinks are float32 for the library, whatever the file holds. */
static int read_sinks(struct attend_work *work)
{
    const char *path = work->request->sinks;
    struct npy *array = &work->sinks_array;
    int64_t heads = work->tensor[ATTEND_Q].shape[2];
    int32_t dtype;
    int code = array_read_any(array, &dtype, path, &work->request->types);
    if (code)
        return code;
    if (array->rank != 1 || array->shape[0] != heads)
        return tool_fail(TOOL_REFUSED,
                         "%s: has %d dimensions and %lld elements: must be [%lld], one for each "
                         "head of Q",
                         path, array->rank, (long long)array->count, (long long)heads);
    work->sinks = malloc(array->count * sizeof(float) + 1);
    if (!work->sinks)
        return tool_fail(TOOL_SYSTEM, "%s: %s", path, strerror(ENOMEM));
    for (size_t i = 0; i < array->count; i++)
        work->sinks[i] = value_at(array->data, dtype, i);
    return TOOL_OK;
}

static void put_shape(char *text, size_t size, const int64_t *shape, int rank)
{
    size_t used = 0;
    *text = 0;
    for (int d = 0; d < rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", d ? ", " : "",
                                 (long long)shape[d]);
}

/* A bias lies in the file as everywhere in the field, [batch][head][query][key]; the library's view
 * of it is [batch][query][head][key]. */
static int read_bias(struct attend_work *work)
{
    const char *path = work->request->bias;
    struct npy *array = &work->bias_array;
    const posenc_tensor *q = &work->tensor[ATTEND_Q], *k = &work->tensor[ATTEND_K];
    const int64_t want[4] = {q->shape[0], q->shape[2], q->shape[1], k->shape[1]};
    int64_t has[4] = {1, 1, 1, 1};
    int32_t dtype;
    int code = array_read_any(array, &dtype, path, &work->request->types);
    if (code)
        return code;
    int fits = array->rank >= 2 && array->rank <= 4;
    for (int d = 4 - array->rank; fits && d < 4; d++) {
        has[d] = array->shape[d - (4 - array->rank)];
        fits = has[d] == want[d] || (d < 3 && has[d] == 1);
    }
    if (!fits) {
        char is[128], be[128];
        put_shape(is, sizeof is, array->shape, array->rank);
        put_shape(be, sizeof be, want, 4);
        return tool_fail(TOOL_REFUSED,
                         "%s: the shape is [%s]: must be [batch, head, query, key], here [%s], or "
                         "the last two or three of them; 1 stands for all but keys",
                         path, is, be);
    }
    work->bias = (posenc_tensor){array->data, dtype, {has[0], has[2], has[1], has[3]}, {0}};
    work->bias.stride[3] = 1;
    work->bias.stride[1] = has[3];
    /* The file holds all elements, so the products fit; without elements nothing reads them. */
    work->bias.stride[2] = array->count ? has[2] * has[3] : 0;
    work->bias.stride[0] = array->count ? has[1] * has[2] * has[3] : 0;
    return TOOL_OK;
}

int attend_read(struct attend_work *work)
{
    const struct attend_request *r = work->request;
    int code = TOOL_OK;
    for (int f = ATTEND_Q; f <= ATTEND_V && !code; f++)
        code = array_read(&work->array[f], &work->tensor[f], r->path[f], &r->types);
    if (!code && !work->tensor[ATTEND_Q].shape[3])
        code = tool_fail(TOOL_REFUSED, "%s: has 0 channels: must be 1 or more", r->path[ATTEND_Q]);
    if (!code && r->sinks)
        code = read_sinks(work);
    return !code && r->bias ? read_bias(work) : code;
}
