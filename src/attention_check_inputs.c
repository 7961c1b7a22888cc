/* SPDX-License-Identifier: MIT */
/* The checks of what attention reads: q, k, v and the views and arrays of its params. */
#include "attention_check.h"
#include "error.h"
#include "plan.h"

#include <math.h>

static int32_t check_same(const posenc_tensor *a, const char *a_name, const posenc_tensor *b,
                          const char *b_name, int dimension, posenc_error *error)
{
    if (a->shape[dimension] == b->shape[dimension])
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.shape[%d] is %d: must be that of %s, %d",
                       a_name, (int64_t)dimension, a->shape[dimension], b_name,
                       b->shape[dimension]);
}

static int32_t check_main(struct posenc_attention_memory *memory, const posenc_tensor *t,
                          const char *name, posenc_error *error)
{
    int32_t status = posenc_view_check(&memory->in[memory->ins++], t, name, error);
    if (!status && t->shape[3] > POSENC_ATTENTION_CHANNELS)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.shape[3] is %d: must be 1..%d",
                             name, t->shape[3], (int64_t)POSENC_ATTENTION_CHANNELS);
    return status;
}

static int32_t check_keys(struct posenc_attention_job *job, struct posenc_attention_memory *memory,
                          posenc_error *error)
{
    const posenc_tensor *q = job->q, *k = job->k, *v = job->v;
    int32_t status = check_main(memory, k, "k", error);
    if (!status)
        status = check_main(memory, v, "v", error);
    if (!status)
        status = check_same(k, "k", q, "q", 0, error);
    if (!status)
        status = check_same(k, "k", q, "q", 3, error);
    for (int d = 0; !status && d < 3; d++)
        status = check_same(v, "v", k, "k", d, error);
    if (!status)
        job->capacity = k->shape[1];
    return status;
}

static int32_t check_qkv(struct posenc_attention_job *job, struct posenc_attention_memory *memory,
                         posenc_error *error)
{
    const posenc_tensor *q = job->q, *k = job->k, *v = job->v;
    int32_t status = check_main(memory, q, "q", error);
    if (!status)
        status = job->k_map ? posenc_attention_caches_check(job, memory, error)
                            : check_keys(job, memory, error);
    if (status)
        return status;
    if (k->shape[2] ? q->shape[2] % k->shape[2] != 0 : q->shape[2] != 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "q.shape[2] is %d heads: must be a multiple of the %d heads of k",
                           q->shape[2], k->shape[2]);
    job->heads = q->shape[2];
    job->key_heads = k->shape[2];
    job->channels = q->shape[3];
    job->values = v->shape[3];
    return POSENC_OK;
}

int32_t posenc_attention_shape_check(const posenc_tensor *t, const char *name,
                                     const int64_t shape[4], unsigned broadcast,
                                     posenc_error *error)
{
    for (int d = 0; d < 4; d++) {
        int may_be_one = broadcast >> d & 1;
        if (t->shape[d] == shape[d] || (may_be_one && t->shape[d] == 1))
            continue;
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           may_be_one ? "%s.shape[%d] is %d: must be %d or 1"
                                      : "%s.shape[%d] is %d: must be %d",
                           name, (int64_t)d, t->shape[d], shape[d]);
    }
    return POSENC_OK;
}

/* An optional view; of F32 alone if `float_only`. */
static int32_t check_view(struct posenc_attention_memory *memory, const posenc_tensor *t,
                          const char *name, int float_only, const int64_t shape[4],
                          unsigned broadcast, posenc_error *error)
{
    if (!t)
        return POSENC_OK;
    int32_t status = posenc_view_check(&memory->in[memory->ins++], t, name, error);
    if (!status && float_only && t->dtype != POSENC_F32)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.dtype is %d: must be POSENC_F32",
                             name, (int64_t)t->dtype);
    return status ? status : posenc_attention_shape_check(t, name, shape, broadcast, error);
}

static int32_t check_array(struct posenc_attention_memory *memory, const void *data, int64_t count,
                           size_t size, const char *name, posenc_error *error)
{
    return data ? posenc_array_check(&memory->array[memory->arrays++], data, (size_t)count, size,
                                     name, error)
                : POSENC_OK;
}

enum { BATCH = 1, TOKENS = 2, HEADS = 4 };

static int32_t check_score_views(const struct posenc_attention_job *job,
                                 struct posenc_attention_memory *memory, posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    const int64_t *q = job->q->shape;
    const unsigned any = BATCH | TOKENS | HEADS;
    const int64_t temperature[4] = {q[0], q[1], q[2], 1};
    const int64_t bias[4] = {q[0], q[1], q[2], job->capacity};
    const int64_t table[4] = {1, job->t5.num_buckets, 1, q[2]};
    int32_t status = check_view(memory, p->temperature, "params.temperature", 1, temperature, any,
                                error);
    if (!status && job->capacity)
        status = check_view(memory, p->bias, "params.bias", 0, bias, any, error);
    if (!status && q[2])
        status = check_view(memory, p->t5_table, "params.t5_table", 0, table, 0, error);
    return status ? status
                  : check_array(memory, p->sinks, q[2], sizeof(float), "params.sinks", error);
}

static int32_t check_deberta_views(const struct posenc_attention_job *job,
                                   struct posenc_attention_memory *memory, posenc_error *error)
{
    const posenc_attention_deberta *d = &job->deberta;
    const int64_t span = d->buckets ? d->buckets : d->max_distance;
    const int64_t shape[4] = {1, 2 * span, job->heads, job->channels};
    int32_t status = check_view(memory, d->position_keys, "params.deberta.position_keys", 0, shape,
                                0, error);
    return status ? status
                  : check_view(memory, d->position_queries, "params.deberta.position_queries", 0,
                               shape, 0, error);
}

/* Batch rows of what is indexed by stored key. */
static int64_t batches_of(const struct posenc_attention_job *job)
{
    return job->k_map ? job->k_map->sequences : job->q->shape[0];
}

/* An empty bias with the heads and keys of the call: posenc_alibi_bias checks the rest. */
static int32_t check_alibi(const struct posenc_attention_job *job,
                           struct posenc_attention_memory *memory, posenc_error *error)
{
    const posenc_alibi_params *a = &job->alibi;
    posenc_tensor none;
    posenc_error inner = {0};
    int64_t keys = job->capacity, batch = batches_of(job);
    if (!job->heads || !keys)
        return POSENC_OK;
    posenc_tensor_contiguous(&none, NULL, POSENC_F32, batch, 0, job->heads, keys);
    int32_t status = posenc_alibi_bias(a, &none, &inner);
    if (status)
        return posenc_fail(error, status, "params.alibi: %s", inner.text);
    status = check_array(memory, a->slopes, job->heads, sizeof(double), "params.alibi.slopes",
                         error);
    return status ? status
                  : check_array(memory, a->key_positions, a->key_positions ? batch * keys : 0,
                                sizeof(int64_t), "params.alibi.key_positions", error);
}

static int32_t check_row_view(const struct posenc_attention_job *job,
                              struct posenc_attention_memory *memory, const posenc_tensor *rows,
                              const char *name, int64_t batch, int64_t tokens,
                              posenc_error *error)
{
    if (!rows)
        return POSENC_OK;
    const posenc_plan *plan = job->params.rope;
    const int64_t shape[4] = {batch, tokens, 1, plan->rotary_dim};
    if (job->channels != plan->head_dim && job->channels != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "q.shape[3] is %d: must be the head_dim (%d) or rotary_dim (%d) of "
                           "params.rope",
                           job->channels, (int64_t)plan->head_dim, (int64_t)plan->rotary_dim);
    return check_view(memory, rows, name, 1, shape, BATCH, error);
}

static int32_t check_rotation(const struct posenc_attention_job *job,
                              struct posenc_attention_memory *memory, posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    int32_t status = check_row_view(job, memory, p->query_rows, "params.query_rows",
                                    job->q->shape[0], job->q->shape[1], error);
    if (!status)
        status = check_row_view(job, memory, p->key_rows, "params.key_rows", batches_of(job),
                                job->capacity, error);
    if (!status && (p->rotate_from < 0 || p->rotate_from > job->capacity))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             job->k_map ? "params.rotate_from is %d: must be 0..%d, the slots of k"
                                        : "params.rotate_from is %d: must be 0..k.shape[1] (%d)",
                             p->rotate_from, job->capacity);
    return status;
}

int32_t posenc_attention_inputs_check(struct posenc_attention_job *job,
                                      struct posenc_attention_memory *memory, posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    int32_t status = check_qkv(job, memory, error);
    if (!status)
        status = check_score_views(job, memory, error);
    if (!status && p->alibi)
        status = check_alibi(job, memory, error);
    if (!status && p->deberta)
        status = check_deberta_views(job, memory, error);
    if (!status)
        status = check_rotation(job, memory, error);
    if (!status)
        status = posenc_attention_sequences_check(job, memory, error);
    if (status)
        return status;
    int terms = p->deberta ? !!job->deberta.position_keys + !!job->deberta.position_queries : 0;
    job->scale = p->scale != 0 ? p->scale : 1 / sqrt((double)job->channels * (1 + terms));
    job->scale *= p->multiplier != 0 ? p->multiplier : 1;
    return POSENC_OK;
}
