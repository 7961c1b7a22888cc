/* SPDX-License-Identifier: MIT */
/* What attention adds to the score of a key: terms by place, a tensor's values. */
#ifndef POSENC_ATTENTION_BIAS_H
#define POSENC_ATTENTION_BIAS_H

#include "attention_job.h"
#include "relative.h"

/* What terms by place depend on, made once for a call and once for each head. */
struct posenc_attention_bias {
    const struct posenc_attention_job *job;
    int64_t head;
    double slope; /* ALiBi's, of the head */
    union {
        struct posenc_t5 t5;
        struct posenc_deberta deberta;
    } by;
};

void posenc_attention_bias_init(struct posenc_attention_bias *bias,
                                const struct posenc_attention_job *job);
void posenc_attention_bias_head(struct posenc_attention_bias *bias, int64_t head);

/* 1 if scores get anything added. */
static inline int posenc_attention_has_bias(const struct posenc_attention_job *job)
{
    const posenc_attention_params *p = &job->params;
    return p->bias || p->alibi || p->t5 || p->deberta;
}

/* The term of ALiBi or T5, where there is one, for logical places of a query and a key. */
float posenc_attention_term(const struct posenc_attention_bias *bias,
                            const struct posenc_attention_sequence *s, int64_t place, int64_t key);

/*
 * The row of DeBERTa's views that both its products take. transformers gathers the products of
 * position queries and keys with keys as rows, so that they too take bucket(query - key).
 */
static inline int64_t posenc_attention_deberta_row(const struct posenc_attention_bias *bias,
                                                   int64_t place, int64_t key)
{
    return posenc_deberta_index(&bias->by.deberta, place - key, 1);
}

/* The value of the bias tensor, which there is. */
float posenc_attention_bias_value(const struct posenc_attention_job *job,
                                  const struct posenc_attention_sequence *s, int64_t query,
                                  int64_t head, int64_t key);

#endif
