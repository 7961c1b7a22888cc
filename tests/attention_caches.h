/* SPDX-License-Identifier: MIT */
/* Random calls of attention over caches that hold the keys of a plain call. */
#ifndef ATTENTION_CACHES_H
#define ATTENTION_CACHES_H

#include "attention_options.h"

struct caches {
    struct options *o; /* the plain call */
    posenc_attention_params params;
    posenc_cache k, v;
    posenc_cache_header header;
    posenc_alibi_params alibi;
    posenc_tensor bias, key_rows, weights, plain_bias, plain_rows;
    int64_t sequences, capacity;
    int64_t *firsts, *turns, *counts, *positions; /* of the cached call */
    int32_t *k_pages, *v_pages;
    uint64_t seed;
};

/*
 * Makes caches of a kind with the keys of a plain call whose options are chosen and which has not
 * been run. What a ring does not hold any more becomes NaN in the plain call and a bias of -inf
 * hides it there; all else that the cached call must not look at is NaN, or a page that there is
 * not.
 */
void caches_init(struct caches *c, struct options *o, int32_t kind, uint64_t seed);
void caches_free(struct caches *c);

/* Where a key of a sequence lies, by the words of cache.h. */
int64_t caches_index(const struct caches *c, int64_t sequence, int64_t key);

/* 1 if a key of a sequence is stored. */
int caches_holds(const struct caches *c, int64_t sequence, int64_t key);

/* Runs both calls and fails unless all results have the same bits. `step` > 0: the cached one by so
 * many spans at a time, and joined. */
void caches_compare(struct caches *c, int32_t isa, int64_t step, const char *text);

#endif
