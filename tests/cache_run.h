/* SPDX-License-Identifier: MIT */
/* A tensor on its way into a cache, as run_cache.py describes it, and how far the result may be
 * from what a model computed. */
#ifndef CACHE_RUN_H
#define CACHE_RUN_H

#include <posenc/posenc.h>

enum { CACHE_RUN_MOST = 2048, CACHE_RUN_TOKENS = 64, CACHE_RUN_PAIRS = 16 };

/* Kinds of values. */
enum { CACHE_Q, CACHE_K, CACHE_V, CACHE_Q_WEIGHT = 6, CACHE_K_WEIGHT = 7 };

/* FIELDS of run_cache.py. */
struct cache_settings {
    double b, t, h, d, source, norm, after, eps, weight, weight_heads, plus_one, scale, layout;
    double out_layout, rotary_dim, rotary_offset, base, scaling, factor, attention_factor;
    double original, mscale, mscale_all_dim, truncate, low, high, length;
};

enum { CACHE_FIELDS = sizeof(struct cache_settings) / sizeof(double) };

struct cache_run {
    struct cache_settings set;
    double short_factors[CACHE_RUN_PAIRS], long_factors[CACHE_RUN_PAIRS];
    int64_t positions[CACHE_RUN_TOKENS];
    posenc_rope_params rope;
    posenc_plan *plan;
    posenc_append_params params;
    posenc_tensor src, rows, weight;
    float src_data[CACHE_RUN_MOST], row_data[CACHE_RUN_MOST], weight_data[CACHE_RUN_MOST];
    double bound[CACHE_RUN_MOST]; /* of each number of the result in F32 */
};

/* Multiples of 2^-10 in [-2, 2). */
float cache_value(uint32_t kind, int64_t i);

/* Reads ID WHAT of tests/data/cache_run.txt; `positions`: the line of that name too, else 0, 1, 2,
 * and so on. */
void cache_run_load(struct cache_run *run, const char *id, const char *what, int positions);

/* Makes everything from the settings, rows by `recipe`. Returns the status of the plan. */
int32_t cache_run_make(struct cache_run *run, int32_t recipe);
void cache_run_free(struct cache_run *run);

/* The tokens [first, first + count) of src, with their rows, which `rows` keeps. */
posenc_tensor cache_run_tokens(const struct cache_run *run, int64_t first, int64_t count,
                               posenc_append_params *params, posenc_tensor *rows);

#endif
