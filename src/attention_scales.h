/* SPDX-License-Identifier: MIT */
/* Stored keys and values of I8 for attention: their scales as floats, heads as floats. */
#ifndef POSENC_ATTENTION_SCALES_H
#define POSENC_ATTENTION_SCALES_H

#include "attention_job.h"
#include "attention_kernels.h"

/* A head of k or v where it lies; of I8, its scales. */
struct posenc_attention_head {
    const void *row, *scales;
};

static inline struct posenc_attention_head
posenc_attention_head_of(const posenc_tensor *t, const struct posenc_cache_map *map,
                         const struct posenc_attention_sequence *s, int64_t key, int64_t key_head)
{
    struct posenc_attention_head head = {posenc_attention_stored(t, map, s, key, key_head), NULL};
    if (map && map->groups)
        head.scales =
            posenc_cache_scale(map, posenc_cache_slot_of(map, s->key_batch, key), key_head);
    return head;
}

/* A head of a tensor as floats; map: of the cache that it belongs to, or NULL. */
void posenc_attention_widen_head(const struct posenc_kernels *kernels, const posenc_tensor *t,
                                 const struct posenc_cache_map *map,
                                 struct posenc_attention_head head, float *to);

/* 64 slots' scales of a head in F16, as the kernels want them, take so many floats; else 0. */
static inline int64_t posenc_attention_wide_scales(const struct posenc_cache_map *map)
{
    return map && map->groups && map->cache.scales.dtype == POSENC_F16
               ? map->groups * POSENC_ATTENTION_TILE
               : 0;
}

/*
 * The scales of the slots [begin, end) of a tile for the kernels, from where they are stored: F32
 * stay there, F16 are widened into `wide` and pointed to by `at`. None where the map has none.
 */
struct posenc_attention_scales
posenc_attention_scales_of(const struct posenc_kernels *kernels, const struct posenc_cache_map *map,
                           const void *const *stored, int64_t begin, int64_t end, float *wide,
                           const void *at[POSENC_ATTENTION_TILE]);

#endif
