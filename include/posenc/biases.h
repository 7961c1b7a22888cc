/* SPDX-License-Identifier: MIT */
/* Relative biases of attention scores: ALiBi, T5, DeBERTa. See posenc.h for the conventions. */
#ifndef POSENC_POSENC_BIASES_H
#define POSENC_POSENC_BIASES_H

#include <posenc/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Slopes of heads [first, first + count) of `heads`, each the double nearest to the formula, with
 * n = the largest power of two <= heads:
 *
 *     2^(-max_bias (k+1) / n)  for k < n,  2^(-(max_bias/2) (2 (k-n) + 1) / n)  for the rest
 *
 * Press et al. 2021; max_bias is 8 there, here > 0 and <= 64. heads 1..65536. */
POSENC_API int32_t posenc_alibi_slopes(double *slopes, int64_t first, int64_t count, int64_t heads,
                                       double max_bias, posenc_error *error);

/*
 * Everywhere here a bias is a view [batch or 1][queries][heads][keys] of F32, F16 or BF16 (its
 * token is the query, its channel the key); query i stands at key index query_offset + i. For the
 * usual cache of Tk keys and the last Tq queries the offset is Tk - Tq.
 */

enum { /* form of ALiBi; DISTANCE, KEY and LAST give the same softmax over keys up to the query */
    POSENC_ALIBI_DISTANCE = 1, /* -slope (query - key); future keys 0 */
    POSENC_ALIBI_KEY = 2,      /* slope * key (BLOOM) */
    POSENC_ALIBI_LAST = 3,     /* slope * (key - (keys - 1)) (MPT) */
    POSENC_ALIBI_ABS = 4,      /* -slope |query - key|: symmetric */
    POSENC_ALIBI_FALCON = 5    /* KEY as transformers' Falcon rounds it, */
                               /* float32(bf16(bf16(slope) * bf16(key))) * float32(scale); */
                               /* KEY with the same scale is the exact form */
};

typedef struct posenc_alibi_params {
    uint32_t struct_size;  /* sizeof(posenc_alibi_params) */
    int32_t form;          /* POSENC_ALIBI_*; no default */
    double max_bias;       /* 8 */
    int64_t heads;         /* of the whole model, 1..65536; no default */
    int64_t first_head;    /* of the range in `bias` (tensor parallel); 0 */
    int64_t query_offset;
    const double *slopes;  /* [heads of bias], the caller's own, then max_bias, heads and */
                           /* first_head are not read; NULL = by the rule. Finite, also */
                           /* times scale; within 2^64 for FALCON */
    double scale;          /* multiplies the bias: Falcon adds it before its softmax scale; 1 */
    int32_t causal;        /* 1: keys after the query get -inf */
    int32_t isa;
    const int64_t *key_positions; /* [batch][keys] for padded rows (posenc_ids_from_mask): what */
                                  /* KEY, LAST and FALCON take for `key`; NULL = 0, 1, ... */
} posenc_alibi_params;

POSENC_API void posenc_alibi_params_init(posenc_alibi_params *params);

/* Fills a bias. Each value is within 0.51 ulp of the formula with the exact slope, in float32, then
 * rounded to the dtype of bias (FALCON: as defined there). Distances fit int32. */
POSENC_API int32_t posenc_alibi_bias(const posenc_alibi_params *params, const posenc_tensor *bias,
                                     posenc_error *error);

typedef struct posenc_t5_params {
    uint32_t struct_size;  /* sizeof(posenc_t5_params) */
    int32_t num_buckets;   /* 32; 2..65536, if bidirectional even and >= 4 */
    int64_t max_distance;  /* 128; above the exact range e, at most 2^53 */
    int32_t bidirectional; /* 1 (encoder) or 0 (decoder); 1 */
    int32_t causal;        /* 1: keys after the query get -inf */
    int64_t query_offset;
    int32_t isa;
    int32_t reserved;
} posenc_t5_params;

POSENC_API void posenc_t5_params_init(posenc_t5_params *params);

/*
 * buckets[i] of relative[i] = key - query, exact for every int32 (the formula in real arithmetic):
 *
 *     n = bidirectional ? num_buckets/2 : num_buckets;  e = n/2
 *     bucket = bidirectional && relative > 0 ? n : 0
 *     d = bidirectional ? |relative| : max(-relative, 0)
 *     bucket += d < e ? d : min(e + floor(ln(d/e) / ln(max_distance/e) * (n-e)), n-1)
 *
 * Raffel et al. 2020.
 */
POSENC_API int32_t posenc_t5_buckets(const posenc_t5_params *params, const int32_t *relative,
                                     size_t count, int32_t *buckets, posenc_error *error);

/* bias[..][i][h][j] = table[bucket(j - i - query_offset)][h]: table is a view [1][num_buckets][1]
 * [heads] of the trained values (F32, F16, BF16), a head range of it by its view. */
POSENC_API int32_t posenc_t5_bias(const posenc_t5_params *params, const posenc_tensor *table,
                                  const posenc_tensor *bias, posenc_error *error);

/*
 * DeBERTa's logarithmic buckets, relative[i] = query - key: |d| < mid = buckets/2 keeps d, else
 * sign(d) (ceil(ln(|d|/mid) / ln((max_distance-1)/mid) (mid-1)) + mid), exact in real arithmetic.
 * buckets is 2..65536, max_distance at least mid + 2 and at most 2^53; beyond max_distance buckets
 * go on. buckets 0: no buckets, d itself. He et al. 2021.
 */
POSENC_API int32_t posenc_deberta_buckets(int32_t buckets, int64_t max_distance,
                                          const int32_t *relative, size_t count, int32_t *out,
                                          posenc_error *error);

/* The index maps of disentangled attention, each [queries][keys], for an embedding of 2*span rows
 * (span = buckets, or max_distance without buckets): c2p[i][j] = clamp(bucket(i - j) + span, 0,
 * 2 span - 1), p2c[i][j] = clamp(-bucket(i - j) + span, 0, 2 span - 1), with i counted from
 * query_offset. transformers gathers p2c with keys as its rows: docs/biases.md. Either may be NULL.
 */
POSENC_API int32_t posenc_deberta_maps(int32_t buckets, int64_t max_distance, int64_t queries,
                                       int64_t keys, int64_t query_offset, int32_t *c2p,
                                       int32_t *p2c, posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
