/* SPDX-License-Identifier: MIT */
/* Attention. See posenc.h for the conventions. */
#ifndef POSENC_POSENC_ATTENTION_H
#define POSENC_POSENC_ATTENTION_H

#include <posenc/base.h>
#include <posenc/biases.h>
#include <posenc/rope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Attention: what an engine checks itself against
 * --------------------------------------------------------------------------------------------- */

enum { /* align: where query 0 of Tq stands among the Tk keys in use of its sequence */
    POSENC_ALIGN_BOTTOM_RIGHT = 0, /* the last query at the last key: key Tk - Tq. Queries padded */
                                   /* on the right like their keys take TOP_LEFT instead */
    POSENC_ALIGN_TOP_LEFT = 1,     /* the first query at the first key: key 0 */
    POSENC_ALIGN_OFFSET = 2        /* at the logical index query_offset, or query_offsets[s] */
};

enum { /* head_map: the key head of query head h */
    POSENC_HEADS_GROUPED = 0,    /* h / (Hq / Hk): neighbours share */
    POSENC_HEADS_INTERLEAVED = 1 /* h % Hk */
};

/* Keys that are summed from fresh, then folded: where a row can be split over threads. */
enum { POSENC_ATTENTION_SPAN = 1024 };

/* DeBERTa's disentangled terms (He et al. 2021) as transformers gathers them, for logical places i
 * of the query and j of the key: the rows n = clamp(bucket(i - j) + span, 0, 2 span - 1) of both
 * views, so c2p[i][j] of posenc_deberta_maps and p2c of the key's row; position key n meets the
 * query, position query n the key. [1][2 span][Hq][D] of F32, F16 or BF16; either may be NULL. */
typedef struct posenc_attention_deberta {
    uint32_t struct_size; /* sizeof(posenc_attention_deberta) */
    int32_t buckets;      /* as for posenc_deberta_buckets */
    int64_t max_distance;
    const posenc_tensor *position_keys;
    const posenc_tensor *position_queries;
} posenc_attention_deberta;

/*
 * The default of every field is 0 or NULL (posenc_attention_params_init sets struct_size too). A
 * sequence s is batch row s, or with `sequences` > 0 the s-th of several packed into batch row 0.
 * Arrays of int64_t by sequence may be NULL.
 */
typedef struct posenc_attention_params {
    uint32_t struct_size; /* sizeof(posenc_attention_params) */
    int32_t causal;       /* 1: a query sees keys up to its own place only */
    double scale;         /* multiplies q.k, finite; 0 = 1/sqrt(channels of q), where DeBERTa's */
                          /* terms are added 1/sqrt(channels x (1 + terms)) */
    int32_t isa;          /* POSENC_ISA_* */
    int32_t reserved;     /* 0 */

    /* Who sees what */
    int32_t align;         /* POSENC_ALIGN_* */
    int32_t head_map;      /* POSENC_HEADS_* */
    int64_t window_left;   /* > 0: keys with query - key < window_left; 0 = no limit */
    int64_t window_right;  /* > 0: keys with key - query < window_right; 0 = no limit */
    int64_t chunk;         /* > 0: keys of the query's own chunk of so many logical indices only; */
                           /* 0 = none. Llama 4 */
    int64_t query_offset;
    const int64_t *query_offsets;
    int64_t first_key;     /* logical index of the first stored key, >= 0: what was evicted */
    const int64_t *first_keys;
    const int64_t *key_counts;   /* stored keys in use, 0..Tk; NULL = all */
    int64_t sequences;           /* > 0: packed into one batch row */
    const int64_t *query_starts; /* [sequences + 1], from 0 to Tq, never falling */
    const int64_t *key_starts;   /* [sequences + 1], from 0 to Tk, never falling */

    /* Scores */
    double multiplier; /* multiplies scale (YaRN's softmax multiplier), finite; 0 = 1 */
    double softcap;    /* > 0: scores become softcap tanh(score / softcap), before any bias; */
                       /* 0 = none. Gemma 2 */
    const posenc_tensor *temperature; /* [B or 1][Tq or 1][Hq or 1][1] F32: multiplies the scale */
    const float *sinks;               /* [Hq], one more score each in the denominator alone */
                                      /* (gpt-oss) */
    const posenc_tensor *bias;        /* [B or 1][Tq or 1][Hq or 1][Tk] F32, F16 or BF16, added; */
                                      /* -inf hides the key. Packed: key index in the sequence. */
                                      /* Of [B][H][Tq][Tk] it is the view with swapped strides */
    /* One of these three, computed inside from logical places: */
    const posenc_alibi_params *alibi; /* its query_offset, causal and isa are 0; heads that of */
                                      /* the model, form has no default */
    const posenc_t5_params *t5;       /* likewise */
    const posenc_tensor *t5_table;    /* [1][num_buckets][1][Hq] */
    const posenc_attention_deberta *deberta;

    /* Rotation inside: by posenc_rotate's formula into F32, not rounded to the stored type. The
     * plan may be anyone's whose rotation these are; views are [B or 1][tokens][1][r] F32. */
    const posenc_plan *rope;
    const posenc_tensor *query_rows;  /* rotates q; NULL = q is rotated */
    const posenc_tensor *key_rows;    /* rotates the stored keys from rotate_from on; NULL = none */
    int64_t rotate_from;              /* index of a stored key, in its sequence; 0 */
    const posenc_tensor *output_rows; /* turns the result back (INVERSE); NULL = not */

    /* More results, F32, apart from all else */
    const posenc_tensor *lse;     /* [B][Tq][Hq][1]: ln of the denominator, sinks included; -inf */
                                  /* where nothing was seen and there is no sink */
    const posenc_tensor *weights; /* [B][n][Hq][Tk]: the softmax of n chosen query rows, 0 where */
                                  /* a key is hidden. Packed: key index in the sequence */
    const int64_t *weight_rows;   /* [n], each 0..Tq-1 */

    /* Memory for large blocks, which never changes the bits: posenc_attention_workspace */
    void *workspace;
    size_t workspace_size; /* bytes; 0 = smaller blocks on the stack */

    int64_t keep; /* the first stored keys, which window_left and chunk do not hide: sinks */
} posenc_attention_params;

/* Sets every field to its default (struct_size included). */
POSENC_API void posenc_attention_params_init(posenc_attention_params *params);

/*
 * out = softmax(scale q k^T + bias) v (Vaswani et al. 2017). Shapes: q [B][Tq][Hq][D],
 * k [B][Tk][Hk][D], v [B][Tk][Hk][E], out [B][Tq][Hq][E]; each F32, F16 or BF16, D and E 1..4096.
 * Arithmetic is float32; out is rounded once. Hq is a multiple of Hk. k and v may share memory
 * (MLA); out shares none with anything. For query i and head h of a sequence, p its logical place,
 * keys counted from first_key on:
 *
 *     seen = keys j in use with !(causal && j > p), j < p + window_right, bias[i][h][j] != -inf,
 *            and j < first_key + keep || (j > p - window_left && j / chunk == p / chunk, floored)
 *     x_j  = scale multiplier temperature q.k_j;  x_j = softcap tanh(x_j / softcap) if > 0
 *     e_j  = exp(x_j + bias[i][h][j]) for seen j;  l = sum e_j (+ exp(sink[h]))
 *     out  = sum e_j v_j / l, zeros if nothing is seen
 *
 * A row's bits depend on its own query and on what it sees, by logical index: one prefill and
 * decoding token by token agree, and so does every split of the queries, heads or sequences into
 * calls. (ALiBi's form LAST is the exception: it names the last key.) What is hidden is never part
 * of a sum, so NaN and inf reach the rows that see them and no other.
 * docs/attention.md gives the arithmetic operation by operation, docs/accuracy.md the bound of
 * errors.
 */
POSENC_API int32_t posenc_attention(const posenc_attention_params *params, const posenc_tensor *q,
                                    const posenc_tensor *k, const posenc_tensor *v,
                                    const posenc_tensor *out, posenc_error *error);

/* How many bytes of workspace make a call of this shape as fast as it gets, whatever its options: 0
 * where the stack is enough, as in decoding. Less is legal, more is not used. queries, q_heads and
 * k_heads are at most 2^40. */
POSENC_API int32_t posenc_attention_workspace(int64_t queries, int64_t q_heads, int64_t k_heads,
                                              int64_t channels, int64_t values, size_t *bytes,
                                              posenc_error *error);

/*
 * Attention split by keys, with the bits of the whole. Span s holds the logical keys from 1024 s
 * on, up to 1024 (s + 1). posenc_attention_spans sums the spans [first_span, first_span + n) of
 * every row into state, an F32 view [B][Tq][Hq][n (E + 17)]: span s has its E + 17 numbers (their
 * meaning is posenc's own) from channel (s - first_span) (E + 17) on. Threads write disjoint views
 * of one state; posenc_attention_join folds all its spans in order, from that of logical key 0 or
 * the first stored key, and finishes rows as posenc_attention does. Its result depends on isa,
 * sinks, lse, rope and output_rows of params alone; lse and output_rows are NULL in spans, and
 * `weights` in both.
 */
POSENC_API int32_t posenc_attention_spans(const posenc_attention_params *params,
                                          const posenc_tensor *q, const posenc_tensor *k,
                                          const posenc_tensor *v, int64_t first_span,
                                          const posenc_tensor *state, posenc_error *error);
POSENC_API int32_t posenc_attention_join(const posenc_attention_params *params,
                                         const posenc_tensor *state, const posenc_tensor *out,
                                         posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
