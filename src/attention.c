/* SPDX-License-Identifier: MIT */
/* The functions of attention.h: each checks every argument and hands a job on. */
#include "attention_check.h"
#include "error.h"
#include "kernels.h"

void posenc_attention_params_init(posenc_attention_params *params)
{
    *params = (posenc_attention_params){
        .struct_size = sizeof(*params),
    };
}

static void attend(const struct posenc_attention_job *job)
{
    if (job->kernels->attention_tiles)
        posenc_attention_tiles_job(job);
    else
        posenc_attention_scalar_job(job);
}

/* The checks that sums over keys have in common. */
static int32_t check(struct posenc_attention_job *job, const posenc_attention_params *params,
                     posenc_error *error)
{
    struct posenc_attention_memory memory;
    memory.ins = memory.outs = memory.arrays = 0;
    int32_t status = posenc_attention_params_check(job, params, error);
    if (!status)
        status = posenc_attention_inputs_check(job, &memory, error);
    if (!status)
        status = posenc_attention_outputs_check(job, &memory, job->q->shape, error);
    if (!status)
        status = posenc_attention_apart(job, &memory, error);
    return status || !job->k_map ? status : posenc_attention_slots_check(job, error);
}

int32_t posenc_attention_to_out(struct posenc_attention_job *job,
                                const posenc_attention_params *params, posenc_error *error)
{
    if (!job->out)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "out is NULL: must be given");
    int32_t status = check(job, params, error);
    if (!status && !posenc_tensor_is_empty(job->out))
        attend(job);
    return status;
}

int32_t posenc_attention_to_state(struct posenc_attention_job *job,
                                  const posenc_attention_params *params, int64_t first_span,
                                  posenc_error *error)
{
    if (!job->state)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "state is NULL: must be given");
    if (first_span < 0 || first_span > INT64_C(1) << 44)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "first_span is %d: must be 0..2^44",
                           first_span);
    job->first_span = first_span;
    int32_t status = check(job, params, error);
    if (!status && (job->params.lse || job->params.output_rows))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "params.%s is given: must be NULL here, posenc_attention_join has it",
                             job->params.lse ? "lse" : "output_rows");
    if (!status && !posenc_tensor_is_empty(job->state))
        attend(job);
    return status;
}

int32_t posenc_attention(const posenc_attention_params *params, const posenc_tensor *q,
                         const posenc_tensor *k, const posenc_tensor *v, const posenc_tensor *out,
                         posenc_error *error)
{
    struct posenc_attention_job job = {.q = q, .k = k, .v = v, .out = out};
    return posenc_attention_to_out(&job, params, error);
}

int32_t posenc_attention_spans(const posenc_attention_params *params, const posenc_tensor *q,
                               const posenc_tensor *k, const posenc_tensor *v, int64_t first_span,
                               const posenc_tensor *state, posenc_error *error)
{
    struct posenc_attention_job job = {.q = q, .k = k, .v = v, .state = state};
    return posenc_attention_to_state(&job, params, first_span, error);
}

int32_t posenc_attention_join(const posenc_attention_params *params, const posenc_tensor *state,
                              const posenc_tensor *out, posenc_error *error)
{
    struct posenc_attention_job job = {.out = out, .state = state};
    struct posenc_attention_memory memory;
    memory.ins = memory.outs = memory.arrays = 0;
    if (!state || !out)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given",
                           state ? "out" : "state");
    job.values = out->shape[3];
    job.heads = out->shape[2];
    int32_t status = posenc_attention_params_check(&job, params, error);
    if (!status && (job.values < 1 || job.values > POSENC_ATTENTION_CHANNELS))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "out.shape[3] is %d: must be 1..%d",
                             job.values, (int64_t)POSENC_ATTENTION_CHANNELS);
    if (!status)
        status = posenc_attention_outputs_check(&job, &memory, out->shape, error);
    if (!status && job.params.sinks)
        status = posenc_array_check(&memory.array[memory.arrays++], job.params.sinks,
                                    (size_t)job.heads, sizeof(float), "params.sinks", error);
    if (!status)
        status = posenc_attention_apart(&job, &memory, error);
    if (!status && !posenc_tensor_is_empty(out))
        posenc_attention_join_job(&job);
    return status;
}

static int32_t check_count(int64_t n, int64_t least, int64_t most, const char *name,
                           posenc_error *error)
{
    if (n >= least && n <= most)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be %d..%d", name, n, least,
                       most);
}

int32_t posenc_attention_workspace(int64_t queries, int64_t q_heads, int64_t k_heads,
                                   int64_t channels, int64_t values, size_t *bytes,
                                   posenc_error *error)
{
    const int64_t any = INT64_C(1) << 40;
    int32_t status = check_count(queries, 0, any, "queries", error);
    if (!status)
        status = check_count(q_heads, 1, any, "q_heads", error);
    if (!status)
        status = check_count(k_heads, 1, q_heads, "k_heads", error);
    if (!status && q_heads % k_heads)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "q_heads is %d: must be a multiple of k_heads (%d)", q_heads, k_heads);
    if (!status)
        status = check_count(channels, 1, POSENC_ATTENTION_CHANNELS, "channels", error);
    if (!status)
        status = check_count(values, 1, POSENC_ATTENTION_CHANNELS, "values", error);
    if (!status && !bytes)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "bytes is NULL: must be given");
    if (!status)
        *bytes = posenc_attention_wanted(queries, q_heads / k_heads, channels, values);
    return status;
}
