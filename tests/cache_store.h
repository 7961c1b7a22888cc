/* SPDX-License-Identifier: MIT */
/* Caches of every kind in guarded memory, filled, for tests of what works on them in place. */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include "support/guard.h"
#include "support/view.h"

enum { STORE_SEQUENCES = 3 };

/* What a cache is asked to be. */
struct store_form {
    int32_t kind, dtype, scale_dtype; /* scale_dtype: of I8 */
    int64_t groups;                   /* I8: scales of a head */
    int64_t sequences, keys;          /* at most STORE_SEQUENCES; slots of a sequence */
    int64_t page;                     /* PAGED: slots of a page */
    int64_t heads, channels;
    int64_t keep;                     /* RING */
    int64_t more;                     /* RING: keys that were overwritten */
    enum test_order order;
    enum test_place place;
};

struct store {
    struct store_form form;
    posenc_cache cache;
    int64_t first[STORE_SEQUENCES], turns[STORE_SEQUENCES];
    struct test_guard rows, scales, pages;
    void *rows_memory, *scales_memory;
    size_t rows_bytes, scales_bytes;
    int32_t *page_memory;
};

/* Any form; keys are few. */
struct store_form store_any(struct test_random *random);

/* Makes it: rows and scales random numbers of at most 1 in size, gaps included. */
void store_new(struct store *s, const struct store_form *form, struct test_random *random);
void store_free(struct store *s);

/* The first channel of a head of a key, and its scales: found by the definition in cache.h. */
void *store_row(const struct store *s, int64_t sequence, int64_t key, int64_t head);
void *store_scale(const struct store *s, int64_t sequence, int64_t key, int64_t head);

/* The keys [low, high) of a sequence that are stored from some key on; in a RING from the kept ones
 * on (late 0: [0, keep)) or the others (late 1). */
void store_range(const struct store *s, int64_t sequence, int late, int64_t *low, int64_t *high);

/* Keys of one call, all of which are stored: of one sequence or of all (-1). */
struct store_keys { int64_t sequence, first, count; };
struct store_keys store_any_keys(const struct store *s, struct test_random *random);

/* Channel c of a key as the float that it counts as. */
float store_value(const struct store *s, int64_t sequence, int64_t key, int64_t head, int64_t c);

/* Stores a head as the library should after its channels [from, to) were turned: rounded once; of
 * I8 the groups that hold any of them, with new scales. */
void store_part(const struct store *s, int64_t sequence, int64_t key, int64_t head,
                const float *values, int64_t from, int64_t to);

/* A copy of all memory, and whether it is still the same. store_same frees it. */
void *store_snapshot(const struct store *s);
int store_same(const struct store *s, void *snapshot);

/* Writes a copy back and frees it. */
void store_restore(const struct store *s, void *snapshot);

#endif
