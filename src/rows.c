/* SPDX-License-Identifier: MIT */
/* Cosine and sine rows of a step: the call, its checks, and which way the plan makes them. */
#include "rows.h"

#include "error.h"
#include "plan.h"
#include "tensor.h"

int32_t posenc_rows_set(const struct posenc_rows_span *span, size_t t)
{
    const posenc_positions *positions = span->positions;
    return posenc_plan_set(span->plan, posenc_length(positions, span->batch),
                           posenc_set(positions, span->batch, span->token + (int64_t)t));
}

static void copy_table(const struct posenc_rows_target *to, ptrdiff_t at, const float *cos,
                       const float *sin, size_t count)
{
    if (to->dtype == POSENC_F32) {
        memcpy((float *)to->cos + at, cos, count * sizeof(float));
        memcpy((float *)to->sin + at, sin, count * sizeof(float));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ((double *)to->cos + at)[i] = cos[i];
        ((double *)to->sin + at)[i] = sin[i];
    }
}

/* How many of `count` pairs from `first` on follow the axis of the first, which is written. */
static size_t pairs_alike(const struct posenc_rows_span *span, size_t first, size_t count,
                          int *axis)
{
    const int32_t *axis_of_pair = span->plan->axis_of_pair;
    size_t alike = 1;
    *axis = 0;
    if (!axis_of_pair || !span->positions->axis_stride)
        return count;
    *axis = axis_of_pair[first];
    while (alike < count && axis_of_pair[first + alike] == *axis)
        alike++;
    return alike;
}

static void fill_from_table(const struct posenc_rows_span *span,
                            const struct posenc_rows_target *to)
{
    const posenc_plan *plan = span->plan;
    int axis;
    for (size_t i = 0, alike; i < to->count; i += alike) {
        alike = pairs_alike(span, to->first + i, to->count - i, &axis);
        for (size_t t = 0; t < span->tokens; t++) {
            size_t position = (size_t)posenc_position(span->positions, axis, span->batch,
                                                      span->token + (int64_t)t);
            size_t at = position * (size_t)plan->pairs + to->first + i;
            copy_table(to, (ptrdiff_t)t * to->stride + (ptrdiff_t)i, plan->params.cos_table + at,
                       plan->params.sin_table + at, alike);
        }
    }
}

void posenc_rows_fill(const struct posenc_rows_span *span, const struct posenc_rows_target *to)
{
    switch (span->plan->rows_by) {
    case POSENC_ROWS_TABLE:
        fill_from_table(span, to);
        return;
    case POSENC_ROWS_HF_F32:
        posenc_rows_hf_f32(span, to);
        return;
    case POSENC_ROWS_GGML:
        posenc_rows_ggml(span, to);
        return;
    default:
        if (to->dtype == POSENC_F64 || span->plan->rows_by == POSENC_ROWS_XPOS)
            posenc_rows_wide(span, to);
        else
            posenc_rows_exact(span, to);
    }
}

void posenc_rows_delta(const struct posenc_rows_span *span, const struct posenc_rows_target *to)
{
    struct posenc_rows_target target = *to;
    target.delta = 1;
    if (span->plan->rows_by == POSENC_ROWS_XPOS)
        posenc_rows_wide(span, &target);
    else
        posenc_rows_exact(span, &target);
}

int32_t posenc_wide_rows_check(const posenc_plan *plan, const char *name, posenc_error *error)
{
    if (plan->rows_by != POSENC_ROWS_HF_F32 && plan->rows_by != POSENC_ROWS_GGML)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s is POSENC_F64: the plan's recipe has rows of POSENC_F32", name);
}

static int32_t check_shape(const posenc_plan *plan, const posenc_tensor *rows, posenc_error *error)
{
    if (rows->dtype == POSENC_F64) {
        int32_t status = posenc_wide_rows_check(plan, "rows.dtype", error);
        if (status)
            return status;
    }
    if (rows->shape[2] != 1 || rows->shape[3] != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rows.shape is [%d, %d, %d, %d]: must be [batch, tokens, 1, %d]",
                           rows->shape[0], rows->shape[1], rows->shape[2], rows->shape[3],
                           (int64_t)plan->rotary_dim);
    return POSENC_OK;
}

int32_t posenc_rows(const posenc_plan *plan, const posenc_positions *positions,
                    const posenc_tensor *rows, posenc_error *error)
{
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL: must be given");
    struct posenc_view view;
    posenc_positions copy;
    int32_t status = posenc_row_view_check(&view, rows, "rows", error);
    if (!status)
        status = posenc_writable_check(&view, error);
    if (!status)
        status = check_shape(plan, rows, error);
    if (!status)
        status = posenc_positions_check(&copy, positions, plan, rows->shape[0], rows->shape[1],
                                        error);
    if (!status)
        status = posenc_positions_apart(&copy, rows->shape[0], rows->shape[1], &view, error);
    /* Without tokens nothing is to do, however many batch rows are said to be there. */
    if (status || posenc_tensor_is_empty(rows))
        return status;
    const int64_t size = posenc_dtype_size(rows->dtype);
    for (int64_t b = 0; b < rows->shape[0]; b++) {
        char *cos = (char *)rows->data + (b ? b * rows->stride[0] * size : 0);
        const struct posenc_rows_span span = {plan, &copy, b, 0, (size_t)rows->shape[1]};
        const struct posenc_rows_target to = {
            .cos = cos,
            .sin = cos + plan->pairs * size,
            .dtype = rows->dtype,
            .stride = rows->shape[1] > 1 ? (ptrdiff_t)rows->stride[1] : 0,
            .count = (size_t)plan->pairs,
        };
        posenc_rows_fill(&span, &to);
    }
    return POSENC_OK;
}
