/* SPDX-License-Identifier: MIT */
/* Sequences of an append: batch rows or packed ones, and a slot for each of their tokens. */
#include "cache_append.h"
#include "error.h"

static int32_t check_choice(const posenc_append_params *p, posenc_error *error)
{
    if (p->sequences < 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.sequences is %d: must be >= 0",
                           p->sequences);
    if (!p->sequences && p->token_starts)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.token_starts is given with sequences 0: only packed calls have "
                           "it");
    if (p->keys && (p->start || p->starts || p->sequences))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.keys is given with %s: a call has one of them",
                           p->start ? "start" : p->starts ? "starts" : "sequences");
    if (!p->keys && (p->key_stride[0] || p->key_stride[1]))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.key_stride is [%d, %d] and keys is NULL: must be given",
                           p->key_stride[0], p->key_stride[1]);
    if (p->start < 0 || p->start > POSENC_CACHE_FARTHEST)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.start is %d: must be 0..2^53",
                           p->start);
    return POSENC_OK;
}

static int32_t check_starts(const struct posenc_append *call, posenc_error *error)
{
    const int64_t *starts = call->params.starts;
    struct posenc_array array;
    if (!starts)
        return POSENC_OK;
    int32_t status = posenc_array_check(&array, starts, (size_t)call->sequences, sizeof(*starts),
                                        "params.starts", error);
    for (int64_t s = 0; !status && s < call->sequences; s++)
        if (starts[s] < 0 || starts[s] > POSENC_CACHE_FARTHEST)
            status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                                 "params.starts[%d] is %d: must be 0..2^53", s, starts[s]);
    return status ? status : posenc_cache_apart_array(&call->map, &array, error);
}

/* From 0 to the tokens of src, never falling. */
static int32_t check_packing(const struct posenc_append *call, posenc_error *error)
{
    const int64_t *starts = call->params.token_starts, count = call->params.sequences;
    const int64_t end = call->src->shape[1];
    struct posenc_array array;
    if (!count)
        return POSENC_OK;
    int32_t status = posenc_array_check(&array, starts, (size_t)count + 1, sizeof(*starts),
                                        "params.token_starts", error);
    for (int64_t s = 0; !status && s <= count; s++) {
        int64_t least = s == count ? end : s ? starts[s - 1] : 0, most = s ? end : 0;
        if (starts[s] < least || starts[s] > most)
            status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                                 least == most ? "params.token_starts[%d] is %d: must be %d"
                                               : "params.token_starts[%d] is %d: must be %d..%d",
                                 s, starts[s], least, most);
    }
    return status ? status : posenc_cache_apart_array(&call->map, &array, error);
}

/* The keys as a view: an element of 64 bits is a channel of two words. */
static int32_t check_keys(const struct posenc_append *call, posenc_error *error)
{
    const posenc_append_params *p = &call->params;
    const int64_t *shape = call->src->shape, limit = INT64_C(1) << 57;
    struct posenc_view view;
    if (!p->keys)
        return POSENC_OK;
    for (int d = 0; d < 2; d++)
        if (shape[d] > 1 && (p->key_stride[d] > limit || p->key_stride[d] < -limit))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "params.key_stride[%d] is %d: must fit the address space",
                               (int64_t)d, p->key_stride[d]);
    if ((uintptr_t)p->keys % _Alignof(int64_t))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.keys is not aligned to its elements of 8 bytes");
    const posenc_tensor words = {
        .data = (void *)(uintptr_t)p->keys,
        .dtype = POSENC_F32,
        .shape = {shape[0], shape[1], 1, 2},
        .stride = {shape[0] > 1 ? 2 * p->key_stride[0] : 0, shape[1] > 1 ? 2 * p->key_stride[1] : 0,
                   0, 1},
    };
    int32_t status = posenc_view_check(&view, &words, "params.keys", error);
    if (!status)
        status = posenc_cache_apart(&call->map, &view, error);
    if (!status && !p->key_stride[1] && shape[1] > 1)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "params.key_stride[1] is 0 with %d tokens: each has a key of its own",
                             shape[1]);
    return status;
}

/* In place a token stays where it is. */
static int32_t check_place(const struct posenc_append *call, int64_t sequence, int64_t batch,
                           int64_t token, struct posenc_append_stretch stretch,
                           posenc_error *error)
{
    while (stretch.count > 0) {
        const struct posenc_cache_slot at = posenc_cache_slot_of(&call->map, sequence, stretch.key);
        const int64_t run = posenc_cache_run(&call->map, sequence, stretch.key);
        if (at.block != batch || at.token != token)
            return posenc_fail(error, POSENC_ERROR_OVERLAP,
                               "cache.rows is src, and token %d of batch row %d would be written "
                               "to slot %d of block %d: must be where it is",
                               token, batch, at.token, at.block);
        stretch.key += run;
        stretch.count -= run;
        token += run;
    }
    return POSENC_OK;
}

static int32_t check_slots(const struct posenc_append *call, posenc_error *error)
{
    for (int64_t n = 0; n < call->sequences; n++) {
        const struct posenc_append_sequence s = posenc_append_sequence_of(call, n);
        struct posenc_append_stretch stretch;
        for (int64_t t = s.first; t < s.end; t += stretch.count) {
            stretch = posenc_append_stretch_of(call, n, &s, t);
            if (stretch.key < 0)
                continue;
            int32_t status =
                posenc_cache_keys_check(&call->map, n, stretch.key, stretch.count, error);
            if (!status && call->in_place)
                status = check_place(call, n, s.batch, t, stretch, error);
            if (status)
                return status;
        }
    }
    return POSENC_OK;
}

int32_t posenc_append_sequences_check(struct posenc_append *call, posenc_error *error)
{
    int32_t status = check_choice(&call->params, error);
    if (!status)
        status = check_starts(call, error);
    if (!status)
        status = check_packing(call, error);
    if (!status)
        status = check_keys(call, error);
    /* Without heads nothing is written, however many tokens are said to be there. */
    return status || posenc_tensor_is_empty(call->src) ? status : check_slots(call, error);
}
