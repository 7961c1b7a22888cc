/* SPDX-License-Identifier: MIT */
/* A checked call of attention, and which keys each of its rows sees. */
#ifndef POSENC_ATTENTION_JOB_H
#define POSENC_ATTENTION_JOB_H

#include "attention.h"
#include "tensor.h"

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
    const posenc_tensor *q, *k, *v, *out;
    const posenc_tensor *state; /* spans: written, join: read */
    int64_t first_span, spans;  /* of state */
    int64_t sequences;
    int64_t heads, key_heads; /* Hq, Hk */
    int64_t channels, values; /* D, E */
    double scale;             /* with multiplier, without temperature */
    int64_t left, right;      /* a query at p sees keys p - left .. p + right */
    void *workspace;          /* aligned to 64 bytes, or NULL */
    size_t workspace_size;
};

/* One sequence: its queries and keys as tokens of the views, and where they stand. */
struct posenc_attention_sequence {
    int64_t batch;
    int64_t first_query, queries; /* tokens of q and out */
    int64_t first_stored, keys;   /* tokens of k and v: stored keys in use */
    int64_t first_key;            /* logical index of the first of them */
    int64_t place;                /* logical place of the first query */
};

struct posenc_attention_sequence
posenc_attention_sequence_of(const struct posenc_attention_job *job, int64_t sequence);

/* Logical keys [begin, end): empty where end <= begin. */
struct posenc_attention_range {
    int64_t begin, end;
};

/* What a query (0 = the first of its sequence) sees but for keys hidden by a bias. */
static inline struct posenc_attention_range
posenc_attention_seen(const struct posenc_attention_job *job,
                      const struct posenc_attention_sequence *s, int64_t query)
{
    int64_t p = s->place + query, n = job->params.chunk;
    int64_t begin = p - job->left, end = p + job->right + 1, last = s->first_key + s->keys;
    if (n) {
        int64_t chunk = p - (p % n + n) % n;
        begin = begin > chunk ? begin : chunk;
        end = end < chunk + n ? end : chunk + n;
    }
    return (struct posenc_attention_range){begin > s->first_key ? begin : s->first_key,
                                           end < last ? end : last};
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
