/* SPDX-License-Identifier: MIT */
/*
 * Where the keys and values of a tile of attention lie, and what to ask for ahead.
 *
 * With posenc_attention_stored for one key, all that knows how stored rows lie.
 */
#include "attention_walk.h"

enum { TILE = POSENC_ATTENTION_TILE };

/* Tokens that lie one after the other: `count` from `token` on of a page, or of a sequence. */
struct stretch {
    int64_t page, token, count;
};

/* That of the logical keys from `key` on, `most` of them at most. Always inlined, as begin_of is: a
 * stretch that goes through memory is waited for, and a tile of one row takes half a
 * microsecond. */
static inline __attribute__((always_inline)) struct stretch
stretch_of(const struct posenc_attention_walk *walk, int64_t key, int64_t most)
{
    const struct posenc_cache_map *map = walk->job->k_map;
    const struct posenc_attention_sequence *s = &walk->s;
    if (!map)
        return (struct stretch){0, s->first_stored + key - s->first_key, most};
    const posenc_cache *c = &map->cache;
    int64_t slots = c->rows.shape[1], end = slots;
    int64_t token = posenc_cache_index(map, s->key_batch, key), page = 0;
    if (c->kind == POSENC_CACHE_PAGED) {
        page = token / slots;
        token -= page * slots;
    } else if (key < c->keep) {
        end = c->keep;
    }
    return (struct stretch){page, token, end - token < most ? end - token : most};
}

/* Where it begins in rows or scales of a cache, or in k or v without one. */
static inline __attribute__((always_inline)) const char *
begin_of(const struct posenc_attention_walk *walk, const struct posenc_cache_map *map,
         const posenc_tensor *t, int64_t key_head, struct stretch at)
{
    int64_t block = walk->s.key_batch;
    if (map && map->cache.kind == POSENC_CACHE_PAGED)
        block = map->cache.pages[block * map->cache.page_stride + at.page];
    return posenc_element(t, block, at.token, key_head, 0);
}

/* Points the slots from `slot` on to what lies `step` bytes apart. */
static void point(const void **to, int64_t slot, int64_t count, const char *at,
                  const posenc_tensor *t)
{
    const ptrdiff_t step = posenc_step(t, 1) * (ptrdiff_t)posenc_dtype_size(t->dtype);
    int64_t i = slot, end = slot + count;
    for (; i + 4 <= end; i += 4, at += 4 * step) { /* one by one each would wait for the last */
        to[i] = at;
        to[i + 1] = at + step;
        to[i + 2] = at + 2 * step;
        to[i + 3] = at + 3 * step;
    }
    for (; i < end; i++, at += step)
        to[i] = at;
}

/* Sets the slots [begin, end), stretch by stretch. */
static void place_slots(const struct posenc_attention_walk *walk, int64_t begin, int64_t end,
                        struct posenc_attention_tile *tile)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_cache_map *km = job->k_map, *vm = job->v_map;
    int64_t h = tile->head;
    for (int64_t i = begin; i < end;) {
        const struct stretch at = stretch_of(walk, tile->first + i, end - i);
        point(tile->key, i, at.count, begin_of(walk, km, job->k, h, at), job->k);
        point(tile->value, i, at.count, begin_of(walk, vm, job->v, h, at), job->v);
        if (km && km->groups)
            point(tile->key_scale, i, at.count, begin_of(walk, km, &km->cache.scales, h, at),
                  &km->cache.scales);
        if (vm && vm->groups)
            point(tile->value_scale, i, at.count, begin_of(walk, vm, &vm->cache.scales, h, at),
                  &vm->cache.scales);
        i += at.count;
    }
}

/* Slots without a key repeat one: those of the gap the last before it, others the nearest. */
static void repeat(const struct posenc_attention_tile *tile, const void **at)
{
    for (int64_t i = tile->gap; i < tile->resume; i++)
        at[i] = at[tile->gap - 1];
    for (int64_t i = 0; i < tile->begin; i++)
        at[i] = at[tile->begin];
    for (int64_t i = tile->end; i < TILE; i++)
        at[i] = at[tile->end - 1];
}

void posenc_attention_place(const struct posenc_attention_walk *walk, int64_t key_head,
                            int64_t first, struct posenc_attention_range range,
                            struct posenc_attention_tile *tile)
{
    range = posenc_attention_clip(range, first, first + TILE);
    tile->head = key_head;
    tile->first = first;
    tile->begin = range.begin - first;
    tile->end = range.end - first;
    tile->gap = range.gap - first;
    tile->resume = range.resume - first;
    place_slots(walk, tile->begin, tile->gap, tile);
    place_slots(walk, tile->resume, tile->end, tile);
    repeat(tile, tile->key);
    repeat(tile, tile->value);
    if (walk->job->k_map && walk->job->k_map->groups)
        repeat(tile, tile->key_scale);
    if (walk->job->v_map && walk->job->v_map->groups)
        repeat(tile, tile->value_scale);
}

int posenc_attention_place_evenly(const struct posenc_attention_walk *walk, int64_t first,
                                  const struct posenc_attention_range *range,
                                  struct posenc_attention_place *at)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_range all = posenc_attention_clip(*range, first, first + TILE);
    if (all.begin != first || all.end != first + TILE || all.gap != all.end)
        return 0;
    const struct stretch tokens = stretch_of(walk, first, TILE);
    at->key = begin_of(walk, job->k_map, job->k, walk->head, tokens);
    at->value = begin_of(walk, job->v_map, job->v, walk->head, tokens);
    return tokens.count == TILE;
}

enum { PAGE = 4096 };

/* Bytes from one key or value to the next; in a cache's pages of one key those between pages. */
static int64_t bytes_apart(const struct posenc_cache_map *map, const posenc_tensor *t)
{
    ptrdiff_t step = posenc_step(t, map && t->shape[1] == 1 ? 0 : 1);
    return (step < 0 ? -step : step) * (ptrdiff_t)posenc_dtype_size(t->dtype);
}

/* One of the rows of the logical keys [begin, end) in each page of memory. */
static void ask_pages(const struct posenc_attention_walk *walk, const struct posenc_cache_map *map,
                      const posenc_tensor *t, int64_t key_head, int64_t begin, int64_t end)
{
    const int64_t bytes = bytes_apart(map, t);
    const int64_t rows = bytes <= PAGE / TILE ? TILE : bytes >= PAGE ? 1 : PAGE / bytes;
    for (int64_t i = begin; i < end;) {
        struct stretch at = stretch_of(walk, i, end - i);
        i += at.count;
        for (int64_t last = at.token + at.count; at.token < last; at.token += rows)
            posenc_attention_ask_line(begin_of(walk, map, t, key_head, at));
    }
}

void posenc_attention_ask_pages(const struct posenc_attention_walk *walk, int64_t key_head,
                                int64_t first, struct posenc_attention_range range)
{
    const struct posenc_attention_job *job = walk->job;
    range = posenc_attention_clip(range, first, first + TILE);
    ask_pages(walk, job->k_map, job->k, key_head, range.begin, range.gap);
    ask_pages(walk, job->k_map, job->k, key_head, range.resume, range.end);
    ask_pages(walk, job->v_map, job->v, key_head, range.begin, range.gap);
    ask_pages(walk, job->v_map, job->v, key_head, range.resume, range.end);
}

int posenc_attention_shares_pages(const struct posenc_attention_job *job)
{
    return 2 * bytes_apart(job->k_map, job->k) <= PAGE;
}

int posenc_attention_alternates(const struct posenc_attention_job *job, int again)
{
    const int64_t apart = bytes_apart(job->k_map, job->k);
    return apart < PAGE &&
           (!again || apart == job->channels * posenc_dtype_size(job->k->dtype));
}
