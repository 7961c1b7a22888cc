/* SPDX-License-Identifier: MIT */
/* Rows from angles of the caller. */
#include "angle_dd.h"
#include "error.h"
#include "plan.h"
#include "tensor.h"

/* Angles are below what 192 bits of 1 / 2 pi can reduce, see angle.h. */
static int in_range(double angle)
{
    return angle > -0x1p76 && angle < 0x1p76;
}

static double angle_at(const posenc_tensor *angles, int64_t b, int64_t t, int64_t i)
{
    int64_t at = (b ? b * angles->stride[0] : 0) + (t ? t * angles->stride[1] : 0) + i;
    if (angles->dtype == POSENC_F64)
        return ((const double *)angles->data)[at];
    return (double)((const float *)angles->data)[at];
}

static int32_t check_shapes(const posenc_plan *plan, const posenc_tensor *angles,
                            const posenc_tensor *rows, posenc_error *error)
{
    if (angles->shape[2] != 1 || angles->shape[3] != plan->pairs)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "angles.shape is [%d, %d, %d, %d]: must be [batch, tokens, 1, %d]",
                           angles->shape[0], angles->shape[1], angles->shape[2], angles->shape[3],
                           (int64_t)plan->pairs);
    if (rows->shape[0] != angles->shape[0] || rows->shape[1] != angles->shape[1] ||
        rows->shape[2] != 1 || rows->shape[3] != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rows.shape is [%d, %d, %d, %d]: must be [%d, %d, 1, %d]",
                           rows->shape[0], rows->shape[1], rows->shape[2], rows->shape[3],
                           angles->shape[0], angles->shape[1], (int64_t)plan->rotary_dim);
    return POSENC_OK;
}

static int32_t check_values(const posenc_tensor *angles, posenc_error *error)
{
    for (int64_t b = 0; b < angles->shape[0]; b++)
        for (int64_t t = 0; t < angles->shape[1]; t++)
            for (int64_t i = 0; i < angles->shape[3]; i++)
                if (!in_range(angle_at(angles, b, t, i)))
                    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                                       "angles of batch row %d, token %d, pair %d are %g: must be "
                                       "finite and below 2^76 in size",
                                       b, t, i, angle_at(angles, b, t, i));
    return POSENC_OK;
}

/* A small angle is its own sine: the count of turns would leave it few of 96 places. */
static void fill_f32(double angle, double factor, float *cos, float *sin)
{
    const double size = angle < 0 ? -angle : angle;
    double s = size, c = 1;
    if (size >= 0x1p-26)
        posenc_sincos(posenc_turns_of(size), &s, &c);
    *cos = (float)(c * factor);
    *sin = (float)((angle < 0 ? -s : s) * factor);
}

static void fill_f64(double angle, double factor, double *cos, double *sin)
{
    const double size = angle < 0 ? -angle : angle;
    posenc_dd s = posenc_dd_from(size), c = posenc_dd_from(1);
    if (size >= 0x1p-27)
        posenc_sincos_dd(posenc_turns_of(size), &s, &c);
    s = posenc_dd_mul(s, posenc_dd_from(factor));
    *cos = posenc_dd_mul(c, posenc_dd_from(factor)).hi;
    *sin = angle < 0 ? -s.hi : s.hi;
}

static void fill_token(const posenc_plan *plan, const posenc_tensor *angles,
                       const posenc_tensor *rows, int64_t b, int64_t t)
{
    const double factor = plan->sets->attention_factor;
    const int64_t at = (b ? b * rows->stride[0] : 0) + (t ? t * rows->stride[1] : 0);
    for (int64_t i = 0; i < plan->pairs; i++) {
        const double angle = angle_at(angles, b, t, i);
        const int64_t cos = at + i, sin = cos + plan->pairs;
        if (rows->dtype == POSENC_F64)
            fill_f64(angle, factor, (double *)rows->data + cos, (double *)rows->data + sin);
        else
            fill_f32(angle, factor, (float *)rows->data + cos, (float *)rows->data + sin);
    }
}

int32_t posenc_rows_from_angles(const posenc_plan *plan, const posenc_tensor *angles,
                                const posenc_tensor *rows, posenc_error *error)
{
    struct posenc_view in, out;
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL: must be given");
    if (plan->rows_by == POSENC_ROWS_XPOS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "plan has xpos %d: its decay needs positions, not angles",
                           (int64_t)plan->params.xpos);
    int32_t status = posenc_row_view_check(&in, angles, "angles", error);
    if (!status)
        status = posenc_row_view_check(&out, rows, "rows", error);
    if (!status)
        status = posenc_writable_check(&out, error);
    if (!status)
        status = check_shapes(plan, angles, rows, error);
    if (!status)
        status = posenc_disjoint_check(&out, &in, error);
    if (!status && !posenc_tensor_is_empty(rows))
        status = check_values(angles, error);
    if (status || posenc_tensor_is_empty(rows))
        return status;
    for (int64_t b = 0; b < rows->shape[0]; b++)
        for (int64_t t = 0; t < rows->shape[1]; t++)
            fill_token(plan, angles, rows, b, t);
    return POSENC_OK;
}
