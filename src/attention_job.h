/* SPDX-License-Identifier: MIT */
/* A checked call of attention, and which keys each of its rows sees. */
#ifndef POSENC_ATTENTION_JOB_H
#define POSENC_ATTENTION_JOB_H

#include "attention.h"
#include "cache.h"

/*
 * Spans and join leave out the views that they do not have (NULL). A row is one query of one head;
 * its keys and all places are logical indices.
 */
struct posenc_attention_job {
    posenc_attention_params params; /* with defaults where the caller's struct ended early */
    posenc_alibi_params alibi;      /* likewise, where params.alibi is given, and so on */
    posenc_t5_params t5;
    posenc_attention_deberta deberta;
    const struct posenc_kernels *kernels;
    const posenc_tensor *q, *k, *v, *out; /* k, v of caches: their rows */
    const struct posenc_cache_map *k_map, *v_map; /* caches alike but for their rows; else NULL */
    const posenc_tensor *state; /* spans: written, join: read */
    int64_t first_span, spans;  /* of state */
    int64_t sequences;
    int64_t capacity;         /* Tk: stored keys of a batch row, slots of a cache's sequence */
    int64_t heads, key_heads; /* Hq, Hk */
    int64_t channels, values; /* D, E */
    double scale;             /* with multiplier, without temperature */
    int64_t left, right;      /* a query at p sees keys p - left .. p + right */
    int64_t keep;             /* and these first ones */
    void *workspace;          /* aligned to 64 bytes, or NULL */
    size_t workspace_size;
};

/* One sequence: its queries and keys as tokens of the views, and where they stand. */
struct posenc_attention_sequence {
    int64_t batch;
    int64_t first_query, queries; /* tokens of q and out */
    int64_t first_stored, keys;   /* tokens of k and v: stored keys in use */
    int64_t first_key;            /* logical index of the first of them */
    int64_t oldest;               /* of the first that a ring has not overwritten, after those it */
                                  /* keeps; else first_key */
    int64_t key_batch;            /* the sequence of a cache; else batch */
    int64_t place;                /* logical place of the first query */
};

struct posenc_attention_sequence
posenc_attention_sequence_of(const struct posenc_attention_job *job, int64_t sequence);

/* What arrays by stored key are indexed by, for a logical key in use of a sequence. */
static inline int64_t posenc_attention_index(const struct posenc_attention_job *job,
                                             const struct posenc_attention_sequence *s, int64_t key)
{
    return job->k_map ? posenc_cache_index(job->k_map, s->key_batch, key) : key - s->first_key;
}

/* How many logical keys from `key` on, of `most`, lie one after the other, by index too. */
static inline int64_t posenc_attention_run(const struct posenc_attention_job *job,
                                           const struct posenc_attention_sequence *s, int64_t key,
                                           int64_t most)
{
    int64_t run = job->k_map ? posenc_cache_run(job->k_map, s->key_batch, key) : most;
    return run < most ? run : most;
}

/* Where a head of a logical key lies in k or v, whose map may be NULL. */
static inline const char *posenc_attention_stored(const posenc_tensor *t,
                                                  const struct posenc_cache_map *map,
                                                  const struct posenc_attention_sequence *s,
                                                  int64_t key, int64_t key_head)
{
    if (map)
        return posenc_cache_row(map, posenc_cache_slot_of(map, s->key_batch, key), key_head);
    return posenc_element(t, s->batch, s->first_stored + key - s->first_key, key_head, 0);
}

/* The row that turns the key at an index, or NULL. */
static inline const float *posenc_attention_key_row(const struct posenc_attention_job *job,
                                                    const struct posenc_attention_sequence *s,
                                                    int64_t key)
{
    const posenc_tensor *rows = job->params.key_rows;
    int64_t index = rows ? posenc_attention_index(job, s, key) : 0;
    if (!rows || index < job->params.rotate_from)
        return NULL;
    return (const float *)(const void *)posenc_element(rows, s->key_batch, s->first_stored + index,
                                                       0, 0);
}

/* The logical keys [begin, gap) and [resume, end); none where end <= begin. Without a gap both of
 * its ends are `end`. */
struct posenc_attention_range {
    int64_t begin, end, gap, resume;
};

/* The part of a range in [from, to): it begins and ends with keys. */
static inline struct posenc_attention_range
posenc_attention_clip(struct posenc_attention_range range, int64_t from, int64_t to)
{
    range.begin = range.begin > from ? range.begin : from;
    range.end = range.end < to ? range.end : to;
    if (range.begin >= range.gap && range.begin < range.resume)
        range.begin = range.resume;
    if (range.end > range.gap && range.end <= range.resume)
        range.end = range.gap;
    if (range.begin >= range.gap || range.end <= range.gap)
        range.gap = range.resume = range.end;
    return range;
}

/* The next multiple of `step` after `first`, itself one, from which on so many keys have one of the
 * range, if there are any. */
static inline int64_t posenc_attention_after(struct posenc_attention_range range, int64_t first,
                                             int64_t step)
{
    first += step;
    return first >= range.gap && first + step <= range.resume
               ? range.resume - range.resume % step
               : first;
}

/* What the queries [query, query + count) of a sequence see together but for keys hidden by a bias:
 * neighbours' windows touch, and later queries see no less of what is kept. */
static inline struct posenc_attention_range
posenc_attention_seen(const struct posenc_attention_job *job,
                      const struct posenc_attention_sequence *s, int64_t query, int64_t count)
{
    int64_t p = s->place + query, to = p + count - 1, n = job->params.chunk;
    int64_t begin = p - job->left, reach = to + job->right + 1, last = s->first_key + s->keys;
    int64_t end = last < reach ? last : reach, kept = s->first_key + job->keep;
    if (n) {
        int64_t chunk = p - (p % n + n) % n, after = to - (to % n + n) % n + n;
        begin = begin > chunk ? begin : chunk;
        end = end < after ? end : after;
    }
    begin = begin > s->oldest ? begin : s->oldest;
    kept = kept < last ? kept : last;
    kept = kept < reach ? kept : reach;
    if (kept <= s->first_key)
        return (struct posenc_attention_range){begin, end, end, end};
    if (begin >= end)
        return (struct posenc_attention_range){s->first_key, kept, kept, kept};
    end = end > kept ? end : kept;
    if (begin <= kept)
        return (struct posenc_attention_range){s->first_key, end, end, end};
    return (struct posenc_attention_range){s->first_key, end, kept, begin};
}

/* The same of the spans that the call is about. */
static inline struct posenc_attention_range
posenc_attention_summed(const struct posenc_attention_job *job,
                        const struct posenc_attention_sequence *s, int64_t query, int64_t count)
{
    const struct posenc_attention_range range = posenc_attention_seen(job, s, query, count);
    int64_t begin = job->first_span * POSENC_ATTENTION_SPAN;
    return job->state
               ? posenc_attention_clip(range, begin, begin + job->spans * POSENC_ATTENTION_SPAN)
               : range;
}

static inline int64_t posenc_attention_key_head(const struct posenc_attention_job *job, int64_t h)
{
    return job->params.head_map == POSENC_HEADS_GROUPED ? h / (job->heads / job->key_heads)
                                                        : h % job->key_heads;
}

static inline double posenc_attention_exact_scale(const struct posenc_attention_job *job, int64_t b,
                                                  int64_t token, int64_t h)
{
    const posenc_tensor *t = job->params.temperature;
    return job->scale * (t ? *(const float *)posenc_element(t, b, token, h, 0) : 1.0);
}

/* What multiplies q.k of a row: the product in double, rounded once. */
static inline float posenc_attention_scale(const struct posenc_attention_job *job, int64_t b,
                                           int64_t token, int64_t h)
{
    return (float)posenc_attention_exact_scale(job, b, token, h);
}

/* With a softcap: what multiplies q.k before tanh. */
static inline float posenc_attention_capped_scale(const struct posenc_attention_job *job, int64_t b,
                                                  int64_t token, int64_t h)
{
    return (float)(posenc_attention_exact_scale(job, b, token, h) / job->params.softcap);
}

/* Sums over keys of a row, relative to the maximum m. */
struct posenc_attention_sums {
    float m;
    float l[POSENC_ATTENTION_CHAINS];
    float *o; /* [values] */
    int any;  /* 1: a key was visible */
};

void posenc_attention_clear(struct posenc_attention_sums *sums, int64_t values);

/* A finished span, in which a key was visible, into the totals. */
void posenc_attention_fold(struct posenc_attention_sums *total, float m, const float *l,
                           const float *o, int64_t values);

/*
 * What is left to do for a row after its last span: sink, quotient, rotation back, out and lse.
 * `total` has the final maximum afterwards, and the denominator is returned. `spare` has room for
 * the values.
 */
float posenc_attention_finish(const struct posenc_attention_job *job, int64_t batch, int64_t token,
                              int64_t head, struct posenc_attention_sums *total, float *spare);

/* The whole call, row by row, in plain C: the definition of every bit. */
void posenc_attention_scalar_job(const struct posenc_attention_job *job);

/* The whole call, tile by tile, by the kernels of the job. The same bits. */
void posenc_attention_tiles_job(const struct posenc_attention_job *job);

/* Folds the spans of state and finishes every row. */
void posenc_attention_join_job(const struct posenc_attention_job *job);

/* Bytes of workspace, room for alignment included, for `queries` queries whose key heads have
 * `group` query heads each, whatever the options; 0 if the stack is enough. */
size_t posenc_attention_wanted(int64_t queries, int64_t group, int64_t channels, int64_t values);

#endif
