/* SPDX-License-Identifier: MIT */
/* Appends of every geometry, and where by the header's own words each of their tokens lies. */
#ifndef APPEND_SUPPORT_H
#define APPEND_SUPPORT_H

#include "support/view.h"

/* Sequences, tokens and slots are small, so that rings wrap and pages end often. */
enum {
    APPEND_SEQUENCES = 3,
    APPEND_TOKENS = 11,
    APPEND_SLOTS = 16, /* of a sequence */
    APPEND_PAGE = 3,   /* slots of a page */
    APPEND_PAGES = 20,
    APPEND_ALL = APPEND_SEQUENCES * APPEND_TOKENS
};

enum append_geometry {
    APPEND_PLAIN,      /* contiguous, starts of their own, first keys of their own */
    APPEND_ONE_START,  /* contiguous, a common start, the first key from the header */
    APPEND_RING,       /* wraps, nothing kept */
    APPEND_RING_KEPT,  /* wraps, kept keys, turns */
    APPEND_PAGED,      /* a shuffled table whose sequences share their first page */
    APPEND_PACKED,     /* contiguous, sequences of unequal length in one batch row */
    APPEND_PACKED_PAGED,
    APPEND_KEYS,       /* contiguous, a key for each token, some left out */
    APPEND_KEYS_RING,
    APPEND_GEOMETRIES
};

/* Arguments of a call but for the tensors' data, with the arrays that they point to. */
struct append_case {
    enum append_geometry geometry;
    posenc_append_params params;
    posenc_cache cache;
    posenc_cache_header header;
    struct test_view src, rows;
    int64_t starts[APPEND_SEQUENCES], first_keys[APPEND_SEQUENCES], turns[APPEND_SEQUENCES];
    int64_t token_starts[APPEND_SEQUENCES + 1], keys[APPEND_ALL];
    int32_t pages[APPEND_SEQUENCES][APPEND_PAGES];
};

void append_case_new(struct append_case *c, enum append_geometry geometry, int32_t from, int32_t to,
                     enum test_order src_order, enum test_order rows_order, int64_t heads,
                     int64_t channels);

/* Positions of APPEND_ALL tokens at most, of which no two are equal. */
void append_positions(posenc_positions *positions);

/* The key that token t of batch row b of src becomes, and the sequence that it belongs to; a key
 * below 0: it is left out. */
int64_t append_key(const struct append_case *c, int64_t b, int64_t t, int64_t *sequence);

/* Index of the first channel of a key's head in the memory of rows. */
int64_t append_at(const struct append_case *c, int64_t sequence, int64_t key, int64_t head);

/* Puts `plain`, shaped as src and of the dtype of rows, contiguous, into an image of the cache's
 * memory: what an append of it must leave there. */
void append_image(const struct append_case *c, const void *plain, void *image);

#endif
