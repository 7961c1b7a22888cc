/* SPDX-License-Identifier: MIT */
/* What attention adds to the score of a key: terms by place, a tensor's values. */
#include "attention_bias.h"

#include "alibi.h"
#include "float16.h"

static float as_float(const posenc_tensor *t, const void *element)
{
    float x;
    uint16_t half;
    if (t->dtype == POSENC_F32) {
        memcpy(&x, element, sizeof(x));
        return x;
    }
    memcpy(&half, element, sizeof(half));
    return t->dtype == POSENC_F16 ? posenc_f16_to_f32(half) : posenc_bf16_to_f32(half);
}

void posenc_attention_bias_init(struct posenc_attention_bias *bias,
                                const struct posenc_attention_job *job)
{
    bias->job = job;
    if (job->params.t5)
        posenc_t5_init(&bias->by.t5, &job->t5);
    if (job->params.deberta)
        posenc_deberta_init(&bias->by.deberta, job->deberta.buckets, job->deberta.max_distance);
}

void posenc_attention_bias_head(struct posenc_attention_bias *bias, int64_t head)
{
    bias->head = head;
    if (bias->job->params.alibi)
        bias->slope = posenc_alibi_slope(&bias->job->alibi, head);
}

static float alibi_term(const struct posenc_attention_bias *bias,
                        const struct posenc_attention_sequence *s, int64_t place, int64_t key)
{
    const posenc_alibi_params *p = &bias->job->alibi;
    int64_t position = key;
    if (!posenc_alibi_is_by_key(p->form)) {
        double x = (double)(key - place);
        return posenc_alibi_value(p, bias->slope, posenc_alibi_from_query(p->form, x));
    }
    if (p->key_positions)
        position = p->key_positions[s->key_batch * bias->job->capacity +
                                    posenc_attention_index(bias->job, s, key)];
    position = posenc_alibi_from_key(p->form, position, s->first_key + s->keys);
    return posenc_alibi_value(p, bias->slope, (double)position);
}

float posenc_attention_term(const struct posenc_attention_bias *bias,
                            const struct posenc_attention_sequence *s, int64_t place, int64_t key)
{
    const posenc_tensor *table = bias->job->params.t5_table;
    if (bias->job->params.alibi)
        return alibi_term(bias, s, place, key);
    int32_t bucket = posenc_t5_bucket(&bias->by.t5, key - place);
    return as_float(table, posenc_element(table, 0, bucket, 0, bias->head));
}

float posenc_attention_bias_value(const struct posenc_attention_job *job,
                                  const struct posenc_attention_sequence *s, int64_t query,
                                  int64_t head, int64_t key)
{
    const posenc_tensor *t = job->params.bias;
    return as_float(t, posenc_element(t, s->batch, s->first_query + query, head,
                                      posenc_attention_index(job, s, key)));
}
