/* SPDX-License-Identifier: MIT */
/* The checks of an append, from the outside in. */
#include "attention.h"
#include "bias.h"
#include "cache_append.h"
#include "error.h"
#include "structs.h"

#include <math.h>

static int32_t check_norm(const posenc_append_params *p, posenc_error *error)
{
    if (p->norm < POSENC_NORM_NONE || p->norm > POSENC_NORM_PROJECTION)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.norm is %d: must be a POSENC_NORM_* value", (int64_t)p->norm);
    if (!(p->eps >= 0 && p->eps <= 1))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.eps is %g: must be 0..1", p->eps);
    const char *set = p->norm_after        ? "norm_after"
                      : p->weight          ? "weight"
                      : p->weight_plus_one ? "weight_plus_one"
                                           : NULL;
    if (p->norm == POSENC_NORM_NONE && set)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.%s is given with norm POSENC_NORM_NONE: only a norm has it",
                           set);
    if (p->weight_plus_one && !p->weight)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.weight_plus_one is 1 and weight is NULL: must be given");
    return POSENC_OK;
}

/* What params say by themselves. */
static int32_t check_params(struct posenc_append *call, posenc_error *error)
{
    const posenc_append_params *p = &call->params;
    int32_t status = posenc_flag_check(p->norm_after, "params.norm_after", error);
    if (!status)
        status = posenc_flag_check(p->weight_plus_one, "params.weight_plus_one", error);
    if (!status)
        status = posenc_flag_check(p->stream, "params.stream", error);
    if (!status)
        status = check_norm(p, error);
    if (!status && !(fabs(p->scale) <= FLT_MAX))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "params.scale is %g: must be finite and within the range of float",
                             p->scale);
    if (!status && !p->rope != !p->rows)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "params.%s is given and params.%s is NULL: a rotation takes both",
                             p->rope ? "rope" : "rows", p->rope ? "rows" : "rope");
    call->scale = p->scale == 0 ? 1.0f : (float)p->scale;
    call->eps = (float)p->eps;
    return status ? status : posenc_kernels_choose(&call->kernels, p->isa, "params.isa", error);
}

/* What passes through the stack whole must fit it. */
static int32_t check_room(const struct posenc_append *call, posenc_error *error)
{
    const int wide = call->map.channels > POSENC_ATTENTION_CHANNELS;
    const int quantised = call->map.cache.rows.dtype == POSENC_I8;
    if (!wide || (!call->params.norm_after && !quantised))
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED,
                       "src.shape[3] is %d: must be 1..%d with %s", call->map.channels,
                       (int64_t)POSENC_ATTENTION_CHANNELS,
                       quantised ? "rows of POSENC_I8" : "params.norm_after");
}

/* src against the cache. */
static int32_t check_shape(const struct posenc_append *call, posenc_error *error)
{
    const posenc_tensor *src = call->src;
    const struct posenc_cache_map *map = &call->map;
    const int packed = call->params.sequences > 0;
    if (src->shape[2] != map->heads || src->shape[3] != map->channels)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "src has %d heads of %d channels: must be as the cache, %d of %d",
                           src->shape[2], src->shape[3], map->heads, map->channels);
    if (!packed && src->shape[0] != map->sequences)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "src.shape[0] is %d: must be the sequences of the cache (%d)",
                           src->shape[0], map->sequences);
    if (packed && call->params.sequences != map->sequences)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.sequences is %d: must be the sequences of the cache (%d), or 0",
                           call->params.sequences, map->sequences);
    if (packed && src->shape[0] != 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "src.shape[0] is %d with params.sequences %d: packed sequences share "
                           "batch row 0",
                           src->shape[0], call->params.sequences);
    return POSENC_OK;
}

static int32_t check_rows(const struct posenc_append *call, posenc_error *error)
{
    struct posenc_view view;
    const posenc_plan *plan = call->params.rope;
    const posenc_tensor *rows = call->params.rows, *src = call->src;
    if (!plan)
        return POSENC_OK;
    if (src->shape[3] != plan->head_dim && src->shape[3] != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "src.shape[3] is %d: must be the head_dim (%d) or rotary_dim (%d) of "
                           "params.rope",
                           src->shape[3], (int64_t)plan->head_dim, (int64_t)plan->rotary_dim);
    int32_t status = posenc_row_view_check(&view, rows, "params.rows", error);
    if (status)
        return status;
    if (rows->dtype != POSENC_F32 || rows->shape[2] != 1 || rows->shape[3] != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.rows is [%d, %d, %d, %d] of dtype %d: must be [batch, tokens, "
                           "1, %d] of POSENC_F32",
                           rows->shape[0], rows->shape[1], rows->shape[2], rows->shape[3],
                           (int64_t)rows->dtype, (int64_t)plan->rotary_dim);
    if (rows->shape[0] != 1 && rows->shape[0] != src->shape[0])
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.rows.shape[0] is %d: must be 1 or the batch of src (%d)",
                           rows->shape[0], src->shape[0]);
    if (rows->shape[1] != src->shape[1])
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.rows.shape[1] is %d: must be the tokens of src (%d)",
                           rows->shape[1], src->shape[1]);
    return posenc_cache_apart(&call->map, &view, error);
}

static int32_t check_weight(const struct posenc_append *call, posenc_error *error)
{
    struct posenc_view view;
    const posenc_tensor *w = call->params.weight;
    if (!w)
        return POSENC_OK;
    int32_t status = posenc_view_check(&view, w, "params.weight", error);
    if (status)
        return status;
    if (w->shape[0] != 1 || w->shape[1] != 1 ||
        (w->shape[2] != 1 && w->shape[2] != call->map.heads) || w->shape[3] != call->map.channels)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.weight is [%d, %d, %d, %d]: must be [1, 1, 1 or %d, %d]",
                           w->shape[0], w->shape[1], w->shape[2], w->shape[3], call->map.heads,
                           call->map.channels);
    return posenc_cache_apart(&call->map, &view, error);
}

static void plan_work(struct posenc_append *call)
{
    const posenc_tensor *src = call->src;
    const posenc_plan *plan = call->params.rope;
    call->window = plan && src->shape[3] != plan->rotary_dim ? plan->rotary_offset : 0;
    call->turned = plan ? plan->rotary_dim : 0;
    call->computed = call->params.norm || call->params.stream || call->scale != 1.0f ||
                     call->map.cache.rows.dtype == POSENC_I8;
    call->ahead = !posenc_tensor_is_empty(src) &&
                  posenc_asks_ahead(src->shape[0] * src->shape[1] * src->shape[2] * src->shape[3] *
                                    posenc_dtype_size(src->dtype));
}

/* That the cache can be written, and shares memory with src only where it is src. */
static int32_t check_memory(struct posenc_append *call, const struct posenc_view *src,
                            posenc_error *error)
{
    const posenc_plan *plan = call->params.rope;
    int32_t status = posenc_cache_writable(&call->map, error);
    call->in_place = posenc_views_equal(call->src, &call->map.cache.rows);
    if (!status && !call->in_place)
        return posenc_cache_apart(&call->map, src, error);
    if (!status && plan && plan->layout != plan->out_layout)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "cache.rows is src: must lie apart where the out_layout (%d) of "
                           "params.rope is not its layout (%d)",
                           (int64_t)plan->out_layout, (int64_t)plan->layout);
    return status;
}

int32_t posenc_append_check(struct posenc_append *call, const posenc_append_params *params,
                            const posenc_tensor *src, const posenc_cache *cache,
                            posenc_error *error)
{
    struct posenc_view view;
    int32_t status = posenc_struct_read(&call->params, sizeof(call->params), sizeof(call->params),
                                        params, "params", error);
    if (!status)
        status = check_params(call, error);
    if (!status)
        status = posenc_view_check(&view, src, "src", error);
    if (!status)
        status = posenc_cache_read(&call->map, cache, "cache", error);
    if (status)
        return status;
    call->src = src;
    call->sequences = call->map.sequences;
    status = check_shape(call, error);
    if (!status)
        status = check_room(call, error);
    if (!status)
        status = check_memory(call, &view, error);
    if (!status)
        status = check_rows(call, error);
    if (!status)
        status = check_weight(call, error);
    if (!status)
        status = posenc_cache_header_check(&call->map, call->params.rope, "params.rope", error);
    if (!status)
        status = posenc_append_sequences_check(call, error);
    plan_work(call);
    return status;
}
