/* SPDX-License-Identifier: MIT */
/* The query temperature. */
#include "dd.h"
#include "error.h"
#include "plan.h"
#include "structs.h"

/* So that sums of a position and an offset stay far from overflow. */
#define MAX_OFFSET INT64_C(0x80000000)

static int32_t check_numbers(double factor, int64_t period, int64_t offset, posenc_error *error)
{
    if (!(factor >= 0 && factor <= 0x1p64))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "factor is %g: must be 0..2^64", factor);
    if (period < 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "period is %d: must be >= 1", period);
    if (offset < 0 || offset > MAX_OFFSET)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "offset is %d: must be 0..%d", offset,
                           MAX_OFFSET);
    return POSENC_OK;
}

static int32_t check_scale(struct posenc_view *view, const posenc_tensor *scale,
                           posenc_error *error)
{
    int32_t status = posenc_view_check(view, scale, "scale", error);
    if (status)
        return status;
    if (scale->dtype != POSENC_F32)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "scale.dtype is %d: must be POSENC_F32",
                           (int64_t)scale->dtype);
    for (int d = 2; d < 4; d++)
        if (scale->shape[d] != 1)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "scale.shape[%d] is %d: must be 1",
                               (int64_t)d, scale->shape[d]);
    return posenc_writable_check(view, error);
}

/* Integers on one axis: a temperature has no meaning between two tokens. */
static int32_t check_kind(const posenc_positions *positions, posenc_error *error)
{
    const size_t first_size = offsetof(posenc_positions, axes);
    posenc_positions p = {.struct_size = 0};
    int32_t status =
        posenc_struct_read(&p, sizeof(p), first_size, positions, "positions", error);
    if (!status && p.kind == POSENC_POSITIONS_IDS && p.dtype == POSENC_F64)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.dtype is %d: must be POSENC_I32 or POSENC_I64",
                           (int64_t)p.dtype);
    if (!status && p.axes != 0 && p.axes != 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "positions.axes is %d: must be 0 or 1",
                           (int64_t)p.axes);
    return status;
}

static int32_t check_positions(posenc_positions *copy, const posenc_positions *positions,
                               const struct posenc_view *view, posenc_error *error)
{
    /* The checks are made for plans: this one is all that they ask of one. */
    static const struct posenc_plan plan = {
        .range = {0, INT32_MAX, "query temperature"},
        .axes = 1,
        .num_sets = 1,
    };
    int64_t batch = view->tensor->shape[0], tokens = view->tensor->shape[1];
    int32_t status = check_kind(positions, error);
    if (!status)
        status = posenc_positions_check(copy, positions, &plan, batch, tokens, error);
    return status ? status : posenc_positions_apart(copy, batch, tokens, view, error);
}

int32_t posenc_query_temperature(double factor, int64_t period, int64_t offset,
                                 const posenc_positions *positions, const posenc_tensor *scale,
                                 posenc_error *error)
{
    struct posenc_view view;
    posenc_positions copy;
    int32_t status = check_numbers(factor, period, offset, error);
    if (!status)
        status = check_scale(&view, scale, error);
    if (!status)
        status = check_positions(&copy, positions, &view, error);
    /* Without tokens nothing is to do, however many batch rows are said to be there. */
    if (status || posenc_tensor_is_empty(scale))
        return status;
    int64_t periods = 0; /* ln 1 = 0 */
    float value = 1.0f;
    for (int64_t b = 0; b < scale->shape[0]; b++)
        for (int64_t t = 0; t < scale->shape[1]; t++) {
            int64_t now = (posenc_position(&copy, 0, b, t) + offset) / period;
            if (now != periods) {
                posenc_dd log = posenc_dd_log((double)(now + 1));
                posenc_dd rise = posenc_dd_mul(posenc_dd_from(factor), log);
                value = posenc_dd_round_float(posenc_dd_add(posenc_dd_from(1.0), rise));
                periods = now;
            }
            ((float *)scale->data)[b * scale->stride[0] + t * scale->stride[1]] = value;
        }
    return POSENC_OK;
}
