/* SPDX-License-Identifier: MIT */
/* A sequence of run_cache.py: its queries, keys and values, and how far attention may be off. */
#ifndef CACHE_SEQUENCE_H
#define CACHE_SEQUENCE_H

#include "attention_truth.h"
#include "cache_run.h"

enum { HQ = 4, HK = 2, D = 8, TOKENS = 40, OUT = TOKENS * HQ * D, KEYS = TOKENS * HK * D };

/* q and k are on their way; q_turned and k_turned lie in plain memory. */
struct sequence {
    struct cache_run q, k;
    float q_turned[OUT], k_turned[KEYS], v[KEYS], sinks[HQ], out[OUT];
    posenc_tensor q_view, k_view, v_view, out_view;
    double expected[OUT];
};

extern struct sequence seq;

/* Reads ID of tests/data/cache_run.txt, whose `out` has `count` numbers; q and k are made, not yet
 * appended. */
void sequence_load(const char *id, int32_t recipe, size_t count);
void sequence_free(void);

/* A view of `count` tokens from `first` on. */
posenc_tensor sequence_part(const posenc_tensor *t, int64_t first, int64_t count);

/* Appends all of q or k to plain memory. */
void sequence_append(const struct cache_run *run, const posenc_tensor *to);

/*
 * The largest distance of a token's row from what ran, by its bound: that of attention over exactly
 * these q and k, and what their own errors do. Scores off by d change a weight by a factor of at
 * most exp(2 d), so the row by (exp(2 d) - 1) max |v|. `query` counts in the call, `token` in the
 * sequence; k_bound goes with the call's keys.
 */
double sequence_ratio(const struct attention_call *call, int64_t query, int64_t token,
                      const float *out, const double *k_bound);

#endif
