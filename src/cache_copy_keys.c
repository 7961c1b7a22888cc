/* SPDX-License-Identifier: MIT */
/* The loops of a copy between caches: bytes where they agree, else floats in between. */
#include "cache_copy.h"

/* `tokens` tokens of rows or of scales; within one memory they only move down. */
static void move_tokens(const posenc_tensor *from, struct posenc_cache_slot a,
                        const posenc_tensor *to, struct posenc_cache_slot b, int64_t tokens)
{
    const int64_t heads = to->shape[2], channels = to->shape[3];
    const size_t head = (size_t)(channels * posenc_dtype_size(to->dtype));
    const int by_head = posenc_step(from, 1) == channels && posenc_step(to, 1) == channels;
    const int whole = heads == 1 || (posenc_step(from, 2) == channels &&
                                     posenc_step(to, 2) == channels);
    const int64_t token = heads * channels;
    if (whole && (tokens == 1 || (posenc_step(from, 1) == token && posenc_step(to, 1) == token))) {
        memmove(posenc_element(to, b.block, b.token, 0, 0),
                posenc_element(from, a.block, a.token, 0, 0),
                (size_t)(tokens * heads) * head);
        return;
    }
    const int64_t steps = by_head ? 1 : tokens;
    for (int64_t t = 0; t < steps; t++)
        for (int64_t h = 0; h < heads; h++)
            memmove(posenc_element(to, b.block, b.token + t, h, 0),
                    posenc_element(from, a.block, a.token + t, h, 0),
                    (size_t)(tokens / steps) * head);
}

static void convert(const struct posenc_kernels *kernels, const void *src, int32_t from, void *dst,
                    int32_t to, int64_t count)
{
    if (from == to)
        memcpy(dst, src, (size_t)(count * posenc_dtype_size(to)));
    else
        kernels->convert[from - 1][to - 1](src, dst, (size_t)count);
}

/* A head that is or becomes I8. */
static void copy_head(const struct posenc_key_copy *copy, struct posenc_cache_slot a,
                      struct posenc_cache_slot b, int64_t head)
{
    float values[POSENC_COPY_CHANNELS];
    const struct posenc_cache_map *from = &copy->from, *to = &copy->to;
    const size_t channels = (size_t)to->channels;
    const size_t from_groups = (size_t)from->groups, to_groups = (size_t)to->groups;
    void *src = posenc_cache_row(from, a, head), *dst = posenc_cache_row(to, b, head);
    if (from_groups)
        copy->kernels->dequantise(src, posenc_cache_scale(from, a, head),
                                  from->cache.scales.dtype, from_groups, channels / from_groups,
                                  values);
    else
        convert(copy->kernels, src, from->cache.rows.dtype, values, POSENC_F32, to->channels);
    if (to_groups)
        copy->kernels->quantise(values, to_groups, channels / to_groups, dst,
                                posenc_cache_scale(to, b, head), to->cache.scales.dtype);
    else
        convert(copy->kernels, values, POSENC_F32, dst, to->cache.rows.dtype, to->channels);
}

static void compute_token(const struct posenc_key_copy *copy, struct posenc_cache_slot a,
                          struct posenc_cache_slot b)
{
    const posenc_tensor *from = &copy->from.cache.rows, *to = &copy->to.cache.rows;
    const int64_t heads = copy->to.heads, channels = copy->to.channels;
    const int eight = copy->from.groups || copy->to.groups;
    for (int64_t h = 0; eight && h < heads; h++)
        copy_head(copy, a, b, h);
    if (eight)
        return;
    const int whole = posenc_step(from, 2) == channels && posenc_step(to, 2) == channels;
    const int64_t steps = whole ? 1 : heads;
    for (int64_t h = 0; h < steps; h++)
        convert(copy->kernels, posenc_cache_row(&copy->from, a, h), from->dtype,
                posenc_cache_row(&copy->to, b, h), to->dtype, heads / steps * channels);
}

static void copy_run(const struct posenc_key_copy *copy, struct posenc_cache_slot a,
                     struct posenc_cache_slot b, int64_t tokens)
{
    if (posenc_copy_is_plain(copy)) {
        move_tokens(&copy->from.cache.rows, a, &copy->to.cache.rows, b, tokens);
        if (copy->to.groups)
            move_tokens(&copy->from.cache.scales, a, &copy->to.cache.scales, b, tokens);
        return;
    }
    for (; tokens; tokens--, a.token++, b.token++)
        compute_token(copy, a, b);
}

/* How many keys from t on lie side by side in both caches. */
static int64_t run_of(const struct posenc_key_copy *copy, int64_t from, int64_t to, int64_t t)
{
    const int64_t key = posenc_copy_key(copy, t);
    const int64_t a = posenc_cache_run(&copy->from, from, key);
    const int64_t b = posenc_cache_run(&copy->to, to, copy->first + t);
    int64_t most = a < b ? a : b, n = 1;
    most = copy->count - t < most ? copy->count - t : most;
    if (!copy->keys)
        return most;
    while (n < most && copy->keys[t + n] == key + n)
        n++;
    return n;
}

void posenc_copy_keys(const struct posenc_key_copy *copy)
{
    if (copy->to.heads == 0)
        return;
    for (int64_t b = 0; b < copy->sequences; b++)
        for (int64_t t = 0, n; t < copy->count; t += n) {
            const int64_t from = copy->from_sequence + b, to = copy->to_sequence + b;
            n = run_of(copy, from, to, t);
            copy_run(copy, posenc_cache_slot_of(&copy->from, from, posenc_copy_key(copy, t)),
                     posenc_cache_slot_of(&copy->to, to, copy->first + t), n);
        }
}
