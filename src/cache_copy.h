/* SPDX-License-Identifier: MIT */
/* Keys copied from cache to cache: what its checks and its loops share. */
#ifndef POSENC_CACHE_COPY_H
#define POSENC_CACHE_COPY_H

#include "cache.h"
#include "kernels.h"

/* Key first + t of sequence to_sequence + b becomes what key keys[t], or from_first + t, of
 * from_sequence + b is. */
struct posenc_key_copy {
    struct posenc_cache_map from, to;
    int64_t from_sequence, to_sequence, sequences;
    const int64_t *keys;
    int64_t from_first, first, count;
    const struct posenc_kernels *kernels;
};

static inline int64_t posenc_copy_key(const struct posenc_key_copy *copy, int64_t t)
{
    return copy->keys ? copy->keys[t] : copy->from_first + t;
}

/* 1 if what is stored need not be computed: bytes alone are copied. */
static inline int posenc_copy_is_plain(const struct posenc_key_copy *copy)
{
    const struct posenc_cache_map *from = &copy->from, *to = &copy->to;
    return from->cache.rows.dtype == to->cache.rows.dtype && from->groups == to->groups &&
           (!to->groups || from->cache.scales.dtype == to->cache.scales.dtype);
}

/* Fails if a token would be read after it was written. Keys and pages have passed. */
int32_t posenc_copy_apart(const struct posenc_key_copy *copy, posenc_error *error);

/* Copies. All has been checked. */
void posenc_copy_keys(const struct posenc_key_copy *copy);

/* Heads of I8 that are computed go through so many floats. */
enum { POSENC_COPY_CHANNELS = 8192 };

#endif
