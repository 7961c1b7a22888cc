/* SPDX-License-Identifier: MIT */
/* A checked cache: where a logical key lies, and what must hold of it. */
#ifndef POSENC_CACHE_H
#define POSENC_CACHE_H

#include "array.h"
#include "tensor.h"

/* Logical indices and turns: sums of a few of them are far from overflow. */
#define POSENC_CACHE_FARTHEST (INT64_C(1) << 53)

/* The caller's cache with defaults where its struct ended early, and what follows from it. */
struct posenc_cache_map {
    posenc_cache cache;
    const char *name; /* the argument's, for texts */
    int64_t sequences;
    int64_t capacity; /* slots of a sequence */
    int64_t heads, channels;
    int64_t groups;   /* I8: scales of a head; else 0 */
    struct posenc_view rows, scales; /* scales: begin = end = 0 where there are none */
    struct posenc_array array[3];    /* first_keys, turns, pages */
    int arrays;
};

/*
 * Reads and checks a cache. `name` is the argument's. Checked are shapes, kinds, scales, the arrays
 * by sequence, that scales and rows lie apart and that a header speaks of this memory; not the
 * pages, of which posenc_cache_keys_check looks at those in use, and not the header's plan.
 */
int32_t posenc_cache_read(struct posenc_cache_map *map, const posenc_cache *cache, const char *name,
                          posenc_error *error);

/* Fails unless the keys [first, first + count) of a sequence have slots: all of them at once, in a
 * RING any number from 0 on. */
int32_t posenc_cache_keys_check(const struct posenc_cache_map *map, int64_t sequence, int64_t first,
                                int64_t count, posenc_error *error);

/* Fails if a page holds keys [first, first + count) of the sequences [sequence, sequence +
 * sequences) in two places, so that what is done to a key would be done twice. Keys have passed. */
int32_t posenc_cache_pages_once(const struct posenc_cache_map *map, int64_t sequence,
                                int64_t sequences, int64_t first, int64_t count,
                                posenc_error *error);

/* Fails unless the header, if there is one, is that of this memory with keys rotated by `plan`
 * (NULL: not rotated), which the text calls `plan_name`. */
int32_t posenc_cache_header_check(const struct posenc_cache_map *map, const posenc_plan *plan,
                                  const char *plan_name, posenc_error *error);

/* Fails unless the headers, if there are two, say the same rotation. */
int32_t posenc_cache_headers_agree(const struct posenc_cache_map *from,
                                   const struct posenc_cache_map *to, posenc_error *error);

/* The part of posenc_cache_read that is about the header: its form and stored type. */
int32_t posenc_cache_stored_check(const struct posenc_cache_map *map, posenc_error *error);

/* Fails if what the cache stores shares memory with the view, or with its own arrays. For caches
 * that are written; not for a cache whose rows are the view itself. */
int32_t posenc_cache_apart(const struct posenc_cache_map *map, const struct posenc_view *view,
                           posenc_error *error);
int32_t posenc_cache_apart_array(const struct posenc_cache_map *map,
                                 const struct posenc_array *array, posenc_error *error);
int32_t posenc_cache_writable(const struct posenc_cache_map *map, posenc_error *error);

/* The rest is for caches, sequences and keys that have passed. */

/* Logical index of the first stored key. */
static inline int64_t posenc_cache_first(const struct posenc_cache_map *map, int64_t sequence)
{
    const posenc_cache *c = &map->cache;
    return c->first_keys ? c->first_keys[sequence] : c->header ? c->header->first_key : 0;
}

/* How many of the first `sequences` sequences tell all of them apart, as to which keys they have:
 * without arrays one. Caches without heads may have any number of them. */
static inline int64_t posenc_cache_unlike(const struct posenc_cache_map *map, int64_t sequences)
{
    const posenc_cache *c = &map->cache;
    return c->first_keys || (c->pages && c->page_stride) || sequences < 1 ? sequences : 1;
}

/* What arrays by stored key are indexed by: slots of a sequence counted through all its pages. */
static inline int64_t posenc_cache_index(const struct posenc_cache_map *map, int64_t sequence,
                                         int64_t key)
{
    const posenc_cache *c = &map->cache;
    if (c->kind != POSENC_CACHE_RING)
        return key - posenc_cache_first(map, sequence);
    if (key < c->keep)
        return key;
    int64_t turn = c->turns ? c->turns[sequence] : 0;
    return c->keep + (key - c->keep + turn) % (map->capacity - c->keep);
}

/* A token of rows and scales. */
struct posenc_cache_slot {
    int64_t block, token;
};

static inline struct posenc_cache_slot
posenc_cache_slot_of(const struct posenc_cache_map *map, int64_t sequence, int64_t key)
{
    const posenc_cache *c = &map->cache;
    int64_t index = posenc_cache_index(map, sequence, key), slots = c->rows.shape[1];
    if (c->kind != POSENC_CACHE_PAGED)
        return (struct posenc_cache_slot){sequence, index};
    return (struct posenc_cache_slot){c->pages[sequence * c->page_stride + index / slots],
                                      index % slots};
}

/* How many keys from `key` on lie in slots one after the other: up to the end of a page, of the
 * kept keys, of the ring. At least 1. */
static inline int64_t posenc_cache_run(const struct posenc_cache_map *map, int64_t sequence,
                                       int64_t key)
{
    const posenc_cache *c = &map->cache;
    int64_t index = posenc_cache_index(map, sequence, key), slots = c->rows.shape[1];
    if (c->kind == POSENC_CACHE_PAGED)
        return slots - index % slots;
    return c->kind == POSENC_CACHE_RING && key < c->keep ? c->keep - key : slots - index;
}

static inline char *posenc_cache_row(const struct posenc_cache_map *map,
                                     struct posenc_cache_slot slot, int64_t head)
{
    return posenc_element(&map->cache.rows, slot.block, slot.token, head, 0);
}

/* The first scale of a head of I8. */
static inline char *posenc_cache_scale(const struct posenc_cache_map *map,
                                       struct posenc_cache_slot slot, int64_t head)
{
    return posenc_element(&map->cache.scales, slot.block, slot.token, head, 0);
}

#endif
