/* SPDX-License-Identifier: MIT */
/* Plain calls by the group kernels. */
#include "attention_job.h"

int posenc_attention_is_plain(const struct posenc_attention_job *job);
void posenc_attention_plain_job(const struct posenc_attention_job *job);

/* 1 for what the group kernels can do: F32, one mask, no option. */
int posenc_attention_is_plain(const struct posenc_attention_job *job)
{
    posenc_attention_params plain;
    posenc_attention_params_init(&plain);
    plain.causal = job->params.causal;
    plain.scale = job->params.scale;
    plain.isa = job->params.isa;
    plain.struct_size = job->params.struct_size;
    return memcmp(&plain, &job->params, sizeof(plain)) == 0 && job->out &&
           job->q->dtype == POSENC_F32 && job->k->dtype == POSENC_F32 &&
           job->v->dtype == POSENC_F32 && job->out->dtype == POSENC_F32;
}

void posenc_attention_plain_job(const struct posenc_attention_job *job)
{
    const posenc_tensor *q = job->q, *k = job->k, *v = job->v, *out = job->out;
    int64_t tokens = q->shape[1], keys = k->shape[1], heads = job->heads / job->key_heads;
    struct posenc_attention_group group = {
        .q_token = q->stride[1], .q_head = q->stride[2],
        .k_token = k->stride[1], .v_token = v->stride[1],
        .out_token = out->stride[1], .out_head = out->stride[2],
        .queries = tokens, .heads = heads, .keys = keys,
        .channels = job->channels, .values = job->values,
        .sees = job->params.causal ? keys - tokens + 1 : keys, .causal = job->params.causal,
        .scale = (float)job->scale,
    };
    for (int64_t b = 0; b < q->shape[0]; b++)
        for (int64_t h = 0; h < job->key_heads; h++) {
            group.q = (float *)posenc_element(q, b, 0, h * heads, 0);
            group.k = keys ? (float *)posenc_element(k, b, 0, h, 0) : NULL;
            group.v = keys ? (float *)posenc_element(v, b, 0, h, 0) : NULL;
            group.out = (float *)posenc_element(out, b, 0, h * heads, 0);
            job->kernels->attention(&group);
        }
}

size_t posenc_attention_wanted(int64_t queries, int64_t group, int64_t channels, int64_t values)
{
    (void)queries, (void)group, (void)channels, (void)values;
    return 0;
}
