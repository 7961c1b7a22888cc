/* SPDX-License-Identifier: MIT */
/* The checks of what attention writes, and that it shares memory with nothing. */
#include "attention_check.h"
#include "bias.h"
#include "error.h"
#include "plan.h"
#include "sides.h"

static int32_t check_float(const posenc_tensor *t, const char *name, posenc_error *error)
{
    if (t->dtype == POSENC_F32)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.dtype is %d: must be POSENC_F32", name,
                       (int64_t)t->dtype);
}

static int32_t check_output(struct posenc_attention_memory *memory, const posenc_tensor *t,
                            const char *name, const int64_t shape[4], posenc_error *error)
{
    struct posenc_view *view = &memory->out[memory->outs++];
    int32_t status = posenc_view_check(view, t, name, error);
    if (!status)
        status = posenc_attention_shape_check(t, name, shape, 0, error);
    return status ? status : posenc_writable_check(view, error);
}

static int32_t check_state(struct posenc_attention_job *job,
                           struct posenc_attention_memory *memory, const int64_t shape[3],
                           posenc_error *error)
{
    const posenc_tensor *t = job->state;
    const int64_t each = job->values + POSENC_ATTENTION_CHAINS + 1;
    struct posenc_view *view = job->out ? &memory->in[memory->ins++] : &memory->out[memory->outs++];
    int32_t status = posenc_view_check(view, t, "state", error);
    if (!status)
        status = check_float(t, "state", error);
    if (status)
        return status;
    const int64_t want[4] = {shape[0], shape[1], shape[2], t->shape[3]};
    if (t->shape[3] % each)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "state.shape[3] is %d: must be a multiple of values + 17 (%d)",
                           t->shape[3], each);
    job->spans = t->shape[3] / each;
    status = posenc_attention_shape_check(t, "state", want, 0, error);
    return status || job->out ? status : posenc_writable_check(view, error);
}

static int32_t check_weights(const struct posenc_attention_job *job,
                             struct posenc_attention_memory *memory, const int64_t shape[3],
                             posenc_error *error)
{
    const posenc_tensor *t = job->params.weights;
    const int64_t *rows = job->params.weight_rows;
    if (!t)
        return rows ? posenc_fail(error, POSENC_ERROR_ARGUMENT,
                                  "params.weight_rows is given without weights: must be NULL")
                    : POSENC_OK;
    if (job->state)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.weights is given: must be NULL where a row is split by keys");
    if (!job->capacity)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.weights is given without keys: must be NULL");
    const int64_t want[4] = {shape[0], t->shape[1], shape[2], job->capacity};
    int32_t status = check_output(memory, t, "params.weights", want, error);
    if (!status)
        status = check_float(t, "params.weights", error);
    if (!status)
        status = posenc_array_check(&memory->array[memory->arrays++], rows, (size_t)t->shape[1],
                                    sizeof(*rows), "params.weight_rows", error);
    for (int64_t i = 0; !status && i < t->shape[1]; i++)
        if (rows[i] < 0 || rows[i] >= shape[1])
            status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                                 "params.weight_rows[%d] is %d: must be 0..%d", i, rows[i],
                                 shape[1] - 1);
    return status;
}

static int32_t check_output_rows(const struct posenc_attention_job *job,
                                 struct posenc_attention_memory *memory, const int64_t shape[3],
                                 posenc_error *error)
{
    const posenc_tensor *rows = job->params.output_rows;
    const posenc_plan *plan = job->params.rope;
    if (!rows)
        return POSENC_OK;
    const int64_t want[4] = {shape[0], shape[1], 1, plan->rotary_dim};
    if (job->values != plan->head_dim && job->values != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "out.shape[3] is %d: must be the head_dim (%d) or rotary_dim (%d) of "
                           "params.rope",
                           job->values, (int64_t)plan->head_dim, (int64_t)plan->rotary_dim);
    posenc_error inner = {0};
    int32_t status = posenc_direction_check(plan, POSENC_INVERSE, &inner);
    if (status)
        return posenc_fail(error, status, "params.output_rows: %s", inner.text);
    status = posenc_view_check(&memory->in[memory->ins++], rows, "params.output_rows", error);
    if (!status)
        status = check_float(rows, "params.output_rows", error);
    return status ? status
                  : posenc_attention_shape_check(rows, "params.output_rows", want, 1, error);
}

int32_t posenc_attention_outputs_check(struct posenc_attention_job *job,
                                       struct posenc_attention_memory *memory,
                                       const int64_t shape[3], posenc_error *error)
{
    const posenc_tensor *lse = job->params.lse;
    const int64_t out[4] = {shape[0], shape[1], shape[2], job->values};
    const int64_t one[4] = {shape[0], shape[1], shape[2], 1};
    int32_t status = POSENC_OK;
    if (job->out)
        status = check_output(memory, job->out, "out", out, error);
    if (!status && job->state)
        status = check_state(job, memory, shape, error);
    if (!status && lse)
        status = check_output(memory, lse, "params.lse", one, error);
    if (!status && lse)
        status = check_float(lse, "params.lse", error);
    if (!status)
        status = check_weights(job, memory, shape, error);
    return status ? status : check_output_rows(job, memory, shape, error);
}

/* One of the views that are written, against everything else. */
static int32_t check_apart(const struct posenc_attention_memory *memory, int output,
                           posenc_error *error)
{
    const struct posenc_view *view = &memory->out[output];
    int32_t status = POSENC_OK;
    for (int i = 0; !status && i < memory->ins; i++)
        status = posenc_disjoint_check(view, &memory->in[i], error);
    for (int i = output + 1; !status && i < memory->outs; i++)
        status = posenc_disjoint_check(view, &memory->out[i], error);
    for (int i = 0; !status && i < memory->arrays; i++)
        status = posenc_bias_apart(&memory->array[i], view, error);
    return status;
}

static int32_t check_workspace(struct posenc_attention_job *job,
                               struct posenc_attention_memory *memory, posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    struct posenc_array *array = &memory->array[memory->arrays++];
    int32_t status = posenc_array_check(array, p->workspace, p->workspace_size, 1,
                                        "params.workspace", error);
    for (int i = 0; !status && i < memory->ins; i++)
        status = posenc_bias_apart(array, &memory->in[i], error);
    for (int i = 0; !status && i < memory->arrays - 1; i++)
        if (array->begin < memory->array[i].end && memory->array[i].begin < array->end)
            status = posenc_fail(error, POSENC_ERROR_OVERLAP,
                                 "params.workspace and %s share memory: must lie apart",
                                 memory->array[i].name);
    if (status || !p->workspace_size)
        return status;
    const size_t skip = -(uintptr_t)p->workspace % 64;
    if (skip < p->workspace_size) {
        job->workspace = (char *)p->workspace + skip;
        job->workspace_size = p->workspace_size - skip;
    }
    return POSENC_OK;
}

int32_t posenc_attention_apart(struct posenc_attention_job *job,
                               struct posenc_attention_memory *memory, posenc_error *error)
{
    int32_t status = check_workspace(job, memory, error);
    for (int i = 0; !status && i < memory->outs; i++)
        status = check_apart(memory, i, error);
    return status;
}
