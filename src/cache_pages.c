/* SPDX-License-Identifier: MIT */
/* Pages that hold keys of a call in two places. */
#include "cache.h"
#include "error.h"

/* A bit for each of so many pages at a time, on the stack. */
enum { WINDOW_BYTES = 4096, WINDOW = 8 * WINDOW_BYTES };

/* Entries [begin, end) of a sequence's table: those of the keys [first, first + count). */
struct entries {
    const int32_t *pages;
    int64_t begin, end;
};

static struct entries entries_of(const struct posenc_cache_map *map, int64_t sequence,
                                 int64_t first, int64_t count)
{
    const posenc_cache *c = &map->cache;
    const int64_t slots = c->rows.shape[1], from = posenc_cache_index(map, sequence, first);
    return (struct entries){c->pages + sequence * c->page_stride, from / slots,
                            (from + count - 1) / slots + 1};
}

/* Marks the pages [low, low + WINDOW) of a sequence. Returns an entry whose page is marked already,
 * or -1; *next becomes the least page above the window if that is less. */
static int64_t mark(const struct entries *entries, int64_t low, uint8_t *bits, int64_t *next)
{
    for (int64_t n = entries->begin; n < entries->end; n++) {
        const int64_t page = entries->pages[n], at = page - low;
        if (at >= WINDOW && page < *next)
            *next = page;
        if (at < 0 || at >= WINDOW)
            continue;
        if (bits[at / 8] >> at % 8 & 1)
            return n;
        bits[at / 8] = (uint8_t)(bits[at / 8] | 1 << at % 8);
    }
    return -1;
}

int32_t posenc_cache_pages_once(const struct posenc_cache_map *map, int64_t sequence,
                                int64_t sequences, int64_t first, int64_t count,
                                posenc_error *error)
{
    uint8_t bits[WINDOW_BYTES];
    if (map->cache.kind != POSENC_CACHE_PAGED || count <= 0)
        return POSENC_OK;
    for (int64_t low = 0, next; low < INT64_MAX; low = next) {
        next = INT64_MAX;
        memset(bits, 0, sizeof(bits));
        for (int64_t s = sequence; s < sequence + sequences; s++) {
            const struct entries entries = entries_of(map, s, first, count);
            const int64_t n = mark(&entries, low, bits, &next);
            if (n >= 0)
                return posenc_fail(error, POSENC_ERROR_OVERLAP,
                                   "%s.pages: entry %d of sequence %d is page %d, which holds "
                                   "other keys of the call too: must be a page of its own",
                                   map->name, n, s, (int64_t)entries.pages[n]);
        }
    }
    return POSENC_OK;
}
