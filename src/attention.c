/* SPDX-License-Identifier: MIT */
/* posenc_attention: checks every argument, then hands each (batch, key head) to the kernel. */
#include "attention.h"

#include "error.h"
#include "structs.h"
#include "tensor.h"

#include <math.h>

void posenc_attention_params_init(posenc_attention_params *params)
{
    *params = (posenc_attention_params){
        .struct_size = sizeof(*params),
        .window_left = -1,
        .window_right = -1,
    };
}

/* Where the struct ended in its first form. */
enum { FIRST_SIZE = offsetof(posenc_attention_params, align) };

static int32_t check_params(const posenc_attention_params *p, posenc_error *error)
{
    posenc_attention_params plain;
    posenc_attention_params_init(&plain);
    if (memcmp((const char *)p + FIRST_SIZE, (const char *)&plain + FIRST_SIZE,
               sizeof(plain) - FIRST_SIZE) != 0)
        return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "params: an option is not offered");
    if (p->causal != 0 && p->causal != 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.causal is %d: must be 0 or 1",
                           (int64_t)p->causal);
    if (!(fabs(p->scale) <= FLT_MAX))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.scale is %g: must be finite and within the range of float",
                           p->scale);
    if (p->reserved != 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.reserved is %d: must be 0",
                           (int64_t)p->reserved);
    return POSENC_OK;
}

static int32_t check_view(struct posenc_view *view, const posenc_tensor *t, const char *name,
                          posenc_error *error)
{
    int32_t status = posenc_view_check(view, t, name, error);
    if (status != POSENC_OK)
        return status;
    if (t->dtype != POSENC_F32)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.dtype is %d: must be POSENC_F32 (1)",
                           name, (int64_t)t->dtype);
    if (t->shape[3] > POSENC_ATTENTION_CHANNELS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.shape[3] is %d: must be 1..%d", name,
                           t->shape[3], (int64_t)POSENC_ATTENTION_CHANNELS);
    return POSENC_OK;
}

static int32_t check_same(const posenc_tensor *a, const char *a_name, const posenc_tensor *b,
                          const char *b_name, int dimension, posenc_error *error)
{
    if (a->shape[dimension] == b->shape[dimension])
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s.shape[%d] is %d: must be that of %s, %d",
                       a_name, (int64_t)dimension, a->shape[dimension], b_name,
                       b->shape[dimension]);
}

static int32_t check_shapes(const posenc_tensor *q, const posenc_tensor *k, const posenc_tensor *v,
                            const posenc_tensor *out, posenc_error *error)
{
    int32_t status;
    if ((status = check_same(k, "k", q, "q", 0, error)) != POSENC_OK ||
        (status = check_same(k, "k", q, "q", 3, error)) != POSENC_OK)
        return status;
    for (int d = 0; d < 3; d++)
        if ((status = check_same(v, "v", k, "k", d, error)) != POSENC_OK)
            return status;
    for (int d = 0; d < 3; d++)
        if ((status = check_same(out, "out", q, "q", d, error)) != POSENC_OK)
            return status;
    if ((status = check_same(out, "out", v, "v", 3, error)) != POSENC_OK)
        return status;
    if (k->shape[2] ? q->shape[2] % k->shape[2] != 0 : q->shape[2] != 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "q.shape[2] is %d heads: must be a multiple of the %d heads of k",
                           q->shape[2], k->shape[2]);
    return POSENC_OK;
}

static int32_t check_views(const posenc_tensor *q, const posenc_tensor *k, const posenc_tensor *v,
                           const posenc_tensor *out, posenc_error *error)
{
    const posenc_tensor *tensor[4] = {q, k, v, out};
    static const char *const name[4] = {"q", "k", "v", "out"};
    struct posenc_view view[4];
    int32_t status;
    for (int i = 0; i < 4; i++)
        if ((status = check_view(&view[i], tensor[i], name[i], error)) != POSENC_OK)
            return status;
    if ((status = check_shapes(q, k, v, out, error)) != POSENC_OK ||
        (status = posenc_writable_check(&view[3], error)) != POSENC_OK)
        return status;
    for (int i = 0; i < 3; i++)
        if ((status = posenc_disjoint_check(&view[3], &view[i], error)) != POSENC_OK)
            return status;
    return POSENC_OK;
}

/* Where a view's (batch, head) begins. A view without elements may have no memory at all, and any
 * strides. */
static float *at(const posenc_tensor *t, int64_t batch, int64_t head)
{
    if (posenc_tensor_is_empty(t))
        return t->data;
    return (float *)t->data + (batch ? batch * t->stride[0] : 0) + (head ? head * t->stride[2] : 0);
}

int32_t posenc_attention(const posenc_attention_params *params, const posenc_tensor *q,
                         const posenc_tensor *k, const posenc_tensor *v, const posenc_tensor *out,
                         posenc_error *error)
{
    posenc_attention_params p;
    posenc_attention_params_init(&p);
    int32_t status = posenc_struct_read(&p, sizeof(p), FIRST_SIZE, params, "params", error);
    const struct posenc_kernels *kernels = NULL;
    if (status != POSENC_OK || (status = check_params(&p, error)) != POSENC_OK ||
        (status = posenc_kernels_choose(&kernels, p.isa, "params.isa", error)) != POSENC_OK ||
        (status = check_views(q, k, v, out, error)) != POSENC_OK)
        return status;
    if (posenc_tensor_is_empty(out))
        return POSENC_OK;
    int64_t tokens = q->shape[1], keys = k->shape[1], heads = q->shape[2] / k->shape[2];
    double scale = p.scale != 0 ? p.scale : 1 / sqrt((double)q->shape[3]);
    struct posenc_attention_group job = {
        .q_token = q->stride[1], .q_head = q->stride[2],
        .k_token = k->stride[1], .v_token = v->stride[1],
        .out_token = out->stride[1], .out_head = out->stride[2],
        .queries = tokens, .heads = heads, .keys = keys,
        .channels = q->shape[3], .values = v->shape[3],
        .sees = p.causal ? keys - tokens + 1 : keys, .causal = p.causal,
        .scale = (float)scale,
    };
    for (int64_t b = 0; b < q->shape[0]; b++)
        for (int64_t h = 0; h < k->shape[2]; h++) {
            job.q = at(q, b, h * heads);
            job.k = at(k, b, h);
            job.v = at(v, b, h);
            job.out = at(out, b, h * heads);
            kernels->attention(&job);
        }
    return POSENC_OK;
}

int32_t posenc_attention_workspace(const posenc_attention_params *params, const posenc_tensor *q,
                                   const posenc_tensor *k, const posenc_tensor *v, size_t *bytes,
                                   posenc_error *error)
{
    (void)params, (void)q, (void)k, (void)v, (void)bytes;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "workspaces are not offered");
}

int32_t posenc_attention_spans(const posenc_attention_params *params, const posenc_tensor *q,
                               const posenc_tensor *k, const posenc_tensor *v, int64_t first_span,
                               const posenc_tensor *state, posenc_error *error)
{
    (void)params, (void)q, (void)k, (void)v, (void)first_span, (void)state;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "spans are not offered");
}

int32_t posenc_attention_join(const posenc_attention_params *params, const posenc_tensor *state,
                              const posenc_tensor *out, posenc_error *error)
{
    (void)params, (void)state, (void)out;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "spans are not offered");
}
