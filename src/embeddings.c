/* SPDX-License-Identifier: MIT */
/* Embeddings that rows are added to: what sinusoids and learned tables check alike. */
#include "embeddings.h"

#include "error.h"

static int32_t check_pair(const posenc_tensor *x, const posenc_tensor *out, posenc_error *error)
{
    for (int d = 0; d < 4; d++)
        if (x->shape[d] != out->shape[d])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "out.shape is [%d, %d, %d, %d]: must be that of x, [%d, %d, %d, %d]",
                               out->shape[0], out->shape[1], out->shape[2], out->shape[3],
                               x->shape[0], x->shape[1], x->shape[2], x->shape[3]);
    if ((x->dtype == POSENC_F64) != (out->dtype == POSENC_F64))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "x.dtype is %d and out.dtype %d: both or neither must be POSENC_F64",
                           (int64_t)x->dtype, (int64_t)out->dtype);
    return POSENC_OK;
}

static int32_t check_scale(double scale, const posenc_tensor *x, posenc_error *error)
{
    const double most = x->dtype == POSENC_F64 ? DBL_MAX : (double)FLT_MAX;
    if (scale >= -most && scale <= most)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "embedding_scale is %g: must be finite, as float32 too", scale);
}

int32_t posenc_embeddings_check(struct posenc_embeddings *e, double scale, const posenc_tensor *x,
                                const posenc_tensor *out, posenc_error *error)
{
    int32_t status = posenc_data_view_check(&e->x_view, x, "x", error);
    if (status)
        return status;
    e->out = out ? out : x;
    e->out_view = e->x_view;
    if (out)
        status = posenc_data_view_check(&e->out_view, out, "out", error);
    if (!status)
        status = check_pair(x, e->out, error);
    if (!status && !posenc_views_equal(x, e->out))
        status = posenc_disjoint_check(&e->out_view, &e->x_view, error);
    if (!status)
        status = check_scale(scale, x, error);
    return status;
}
