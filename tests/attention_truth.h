/* SPDX-License-Identifier: MIT */
/* Attention with every option in long double, each number with the bound of its error in float32:
 * docs/accuracy.md derives them. */
#ifndef ATTENTION_TRUTH_H
#define ATTENTION_TRUTH_H

#include <posenc/posenc.h>

/* What a call was given; `rope` holds the parameters of params.rope. */
struct attention_call {
    posenc_attention_params params;
    const posenc_rope_params *rope;
    posenc_tensor q, k, v, out;
};

/* A value and how far what is computed may be from it. */
struct bounded {
    long double x, e;
};

/* One row: query `query` of a sequence, and a query head. */
struct row_truth {
    const struct attention_call *call;
    int64_t batch, token, head, key_head;
    int64_t place, first_key, first_stored, keys; /* logical; stored keys in use */
    int64_t begin, end;                           /* keys seen, as indices of stored ones */
    int64_t visible;                              /* how many of them no bias hides */
    struct bounded *score;                        /* [keys], later the weights */
    unsigned char *hidden;                        /* [keys] */
    struct bounded *value;                        /* [E] */
    struct bounded lse;
    struct bounded *query; /* [D] */
    struct bounded *key;   /* [D] */
    long double spread;    /* of the denominator, relative */
};

/* The number of sequences; the queries of one. */
int64_t truth_sequences(const struct attention_call *call);
int64_t truth_queries(const struct attention_call *call, int64_t sequence);

void row_truth_init(struct row_truth *row, const struct attention_call *call, int64_t sequence,
                    int64_t query, int64_t head);
void row_truth_free(struct row_truth *row);

/* An element by value; a dimension of one element stands for all. */
long double truth_element(const posenc_tensor *t, int64_t b, int64_t token, int64_t head,
                          int64_t channel);

/* The head as floats, rotated by a row of `rows` if not NULL; backwards by INVERSE's formula. */
void truth_rotate(const struct attention_call *call, const posenc_tensor *rows, int64_t batch,
                  int64_t token, int backwards, struct bounded *head, int64_t channels);

/* What is added to the product of stored key j: a bound of 0 and -inf where the key is hidden. */
struct bounded truth_bias(const struct row_truth *row, int64_t j);

/* Sixteen chains and the halving tree over exact or bounded numbers. */
struct bounded truth_product(const struct bounded *a, const struct bounded *b, int64_t channels);

/* The scale of this row without rounding. */
long double truth_scale(const struct row_truth *row);

/* The largest |result - truth| / bound over out, lse and weights of a call that has been run. */
long double truth_worst(const struct attention_call *call);

#endif
