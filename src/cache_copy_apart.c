/* SPDX-License-Identifier: MIT */
/* Whether a copy within one memory reads only what it has not written yet. */
#include "cache_copy.h"
#include "error.h"

/* 1 if both caches are the same rows and scales. */
static int is_one_memory(const struct posenc_key_copy *copy)
{
    const posenc_cache *from = &copy->from.cache, *to = &copy->to.cache;
    return posenc_views_equal(&from->rows, &to->rows) && copy->from.groups == copy->to.groups &&
           (!copy->to.groups || posenc_views_equal(&from->scales, &to->scales));
}

static int32_t check_disjoint(const struct posenc_key_copy *copy, posenc_error *error)
{
    int32_t status = posenc_cache_apart(&copy->to, &copy->from.rows, error);
    if (!status && copy->from.groups)
        status = posenc_cache_apart(&copy->to, &copy->from.scales, error);
    return status;
}

static const int32_t *pages_of(const struct posenc_cache_map *map, int64_t sequence)
{
    return map->cache.pages + sequence * map->cache.page_stride;
}

/* 1 if keys of equal index are the same slots. */
static int is_one_map(const struct posenc_key_copy *copy)
{
    const struct posenc_cache_map *from = &copy->from, *to = &copy->to;
    const int64_t a = copy->from_sequence, b = copy->to_sequence;
    if (posenc_cache_first(from, a) != posenc_cache_first(to, b))
        return 0;
    if (to->cache.kind == POSENC_CACHE_PAGED)
        return pages_of(from, a) == pages_of(to, b);
    if (to->cache.kind == POSENC_CACHE_CONTIGUOUS)
        return 1;
    return from->cache.keep == to->cache.keep &&
           (from->cache.turns ? from->cache.turns[a] : 0) ==
               (to->cache.turns ? to->cache.turns[b] : 0);
}

enum { WINDOW_BYTES = 4096 };

static int64_t entry_of(const struct posenc_cache_map *map, int64_t sequence, int64_t key)
{
    return posenc_cache_index(map, sequence, key) / map->cache.rows.shape[1];
}

/* The pages [low, low + 8 WINDOW_BYTES) that are written, a bit each. */
static void mark_pages(const struct posenc_key_copy *copy, int64_t low, uint8_t *bits)
{
    const int64_t sequence = copy->to_sequence, last = copy->first + copy->count - 1;
    const int64_t end = entry_of(&copy->to, sequence, last);
    memset(bits, 0, WINDOW_BYTES);
    for (int64_t n = entry_of(&copy->to, sequence, copy->first); n <= end; n++) {
        const int64_t at = pages_of(&copy->to, sequence)[n] - low;
        if (at >= 0 && at < 8 * WINDOW_BYTES)
            bits[at / 8] = (uint8_t)(bits[at / 8] | 1 << at % 8);
    }
}

/* Fails if a page that is read, by an entry from `own` on, is written too. */
static int32_t check_pages(const struct posenc_key_copy *copy, int64_t own, posenc_error *error)
{
    uint8_t bits[WINDOW_BYTES];
    const int64_t pages = copy->to.cache.rows.shape[0], slots = copy->to.cache.rows.shape[1];
    for (int64_t low = 0; low < pages; low += 8 * WINDOW_BYTES) {
        mark_pages(copy, low, bits);
        for (int64_t t = 0, step; t < copy->count; t += step) {
            const int64_t key = posenc_copy_key(copy, t);
            const int64_t n = entry_of(&copy->from, copy->from_sequence, key);
            const int64_t at = pages_of(&copy->from, copy->from_sequence)[n] - low;
            if (n >= own && at >= 0 && at < 8 * WINDOW_BYTES && bits[at / 8] >> at % 8 & 1)
                return posenc_fail(error, POSENC_ERROR_OVERLAP,
                                   "from and to share page %d, which holds key %d of from: pages "
                                   "that are written must be others, or of one sequence",
                                   low + at, key);
            step = copy->keys ? 1 : slots - posenc_cache_index(&copy->from, copy->from_sequence,
                                                               key) % slots;
        }
    }
    return POSENC_OK;
}

/* The slots of a ring are those of other keys too, which may be no part of the copy. */
static int32_t check_ring(const struct posenc_key_copy *copy, posenc_error *error)
{
    const posenc_cache *c = &copy->to.cache;
    const int64_t room = copy->to.capacity - c->keep;
    const int64_t low = copy->first > c->keep ? copy->first : c->keep;
    if (c->kind != POSENC_CACHE_RING)
        return POSENC_OK;
    for (int64_t t = 0; t < copy->count; t++)
        if (posenc_copy_key(copy, t) - low >= room)
            return posenc_fail(error, POSENC_ERROR_OVERLAP,
                               "key %d of from and key %d of to: a RING of %d slots that keeps %d "
                               "does not hold both",
                               posenc_copy_key(copy, t), low, copy->to.capacity, c->keep);
    return POSENC_OK;
}

/* What is read at t lies at first + t or above, and what was written before lies below. */
static int32_t check_downward(const struct posenc_key_copy *copy, posenc_error *error)
{
    for (int64_t t = 0; t < copy->count; t++)
        if (posenc_copy_key(copy, t) < copy->first + t)
            return posenc_fail(error, POSENC_ERROR_OVERLAP,
                               "key %d of from becomes key %d of the same sequence: within one "
                               "memory keys only move down",
                               posenc_copy_key(copy, t), copy->first + t);
    return check_ring(copy, error);
}

/* The same in pages, one of which may stand in the table twice. */
static int32_t check_own_pages(const struct posenc_key_copy *copy, posenc_error *error)
{
    const int64_t sequence = copy->to_sequence, last = copy->first + copy->count - 1;
    int32_t status = check_downward(copy, error);
    if (!status)
        status = posenc_cache_pages_once(&copy->to, sequence, 1, copy->first, copy->count, error);
    return status ? status : check_pages(copy, entry_of(&copy->to, sequence, last) + 1, error);
}

int32_t posenc_copy_apart(const struct posenc_key_copy *copy, posenc_error *error)
{
    const posenc_cache *from = &copy->from.cache, *to = &copy->to.cache;
    if (copy->count == 0 || copy->sequences == 0 || copy->to.heads == 0)
        return POSENC_OK;
    if (!is_one_memory(copy))
        return check_disjoint(copy, error);
    if (from->kind != to->kind)
        return posenc_fail(error, POSENC_ERROR_OVERLAP,
                           "from.kind is %d, to.kind %d over the same rows: must be the same kind",
                           (int64_t)from->kind, (int64_t)to->kind);
    const int paged = to->kind == POSENC_CACHE_PAGED;
    if (paged && copy->sequences > 1)
        return posenc_fail(error, POSENC_ERROR_OVERLAP,
                           "from and to are the same pages, of %d sequences: must be copied "
                           "sequence by sequence",
                           copy->sequences);
    if (!paged && copy->from_sequence != copy->to_sequence)
        return POSENC_OK;
    struct posenc_key_copy one = *copy;
    for (int64_t b = 0; b < copy->sequences; b++) {
        one.from_sequence = copy->from_sequence + b;
        one.to_sequence = copy->to_sequence + b;
        int32_t status = POSENC_OK;
        if (is_one_map(&one))
            status = paged ? check_own_pages(&one, error) : check_downward(&one, error);
        else if (paged)
            status = check_pages(&one, 0, error);
        else
            status = posenc_fail(error, POSENC_ERROR_OVERLAP,
                                 "from and to are the same rows and name keys of sequence %d "
                                 "differently: first key, keep and turn must be the same",
                                 one.to_sequence);
        if (status)
            return status;
    }
    return POSENC_OK;
}
