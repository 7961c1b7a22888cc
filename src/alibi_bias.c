/* SPDX-License-Identifier: MIT */
/* Biases of ALiBi. */
#include <math.h>

#include "alibi.h"
#include "bias.h"
#include "error.h"
#include "structs.h"

/* A bias in the making. Distances of a tile are made once for all heads. */
struct alibi {
    posenc_alibi_params params;
    const struct posenc_kernels *kernels;
    int32_t dtype;
    int64_t keys;
    int64_t first_head; /* of the slopes below, in the bias */
    double slopes[POSENC_BIAS_HEADS];
    double distances[POSENC_BIAS_LINE];
    float values[POSENC_BIAS_LINE];
};

void posenc_alibi_params_init(posenc_alibi_params *params)
{
    *params = (posenc_alibi_params){
        .struct_size = sizeof(*params),
        .max_bias = 8,
        .scale = 1,
    };
}

static void next_heads(void *self, int64_t first, int64_t count)
{
    struct alibi *a = self;
    const posenc_alibi_params *p = &a->params;
    a->first_head = first;
    if (p->slopes)
        memcpy(a->slopes, p->slopes + first, (size_t)count * sizeof(*a->slopes));
    else
        posenc_alibi_slopes(a->slopes, p->first_head + first, count, p->heads, p->max_bias, NULL);
}

/* What a slope multiplies, for the element of the line that stands for x = key - query, or key. */
static void next_tile(void *self, const struct posenc_bias_tile *tile)
{
    struct alibi *a = self;
    const posenc_alibi_params *p = &a->params;
    int64_t x = tile->first;
    size_t length = tile->length;
    if (posenc_alibi_is_by_key(p->form) && p->key_positions) {
        const int64_t *position = p->key_positions + tile->batch * a->keys + x;
        for (size_t i = 0; i < length; i++)
            a->distances[i] = (double)posenc_alibi_from_key(p->form, position[i], a->keys);
        return;
    }
    int by_key = posenc_alibi_is_by_key(p->form);
    double from = (double)(by_key ? posenc_alibi_from_key(p->form, x, a->keys) : x);
    for (size_t i = 0; i < length; i++)
        a->distances[i] = from + (double)(int32_t)i;
    for (size_t i = x < 0 ? (size_t)-x : 0; !by_key && i < length; i++)
        a->distances[i] = posenc_alibi_from_query(p->form, a->distances[i]);
}

static void make_line(void *self, const struct posenc_bias_tile *tile, int64_t head, void *line)
{
    struct alibi *a = self;
    double slope = a->slopes[head - a->first_head];
    float *values = a->dtype == POSENC_F32 ? line : a->values;
    if (a->params.form == POSENC_ALIBI_FALCON)
        for (size_t i = 0; i < tile->length; i++)
            values[i] = posenc_alibi_falcon(slope, a->distances[i], (float)a->params.scale);
    else
        a->kernels->scale(a->distances, tile->length, slope * a->params.scale, values);
    if (a->dtype != POSENC_F32)
        a->kernels->convert[POSENC_F32 - 1][a->dtype - 1](values, line, tile->length);
}

/* The caller's own slopes: a product beyond floats would be infinite, and NaN at distance 0. FALCON
 * rounds the slope alone, so that is limited too: times any key it stays finite. */
static int32_t check_slopes(const posenc_alibi_params *p, const struct posenc_view *bias,
                            posenc_error *error)
{
    struct posenc_array array;
    int64_t heads = bias->tensor->shape[2];
    int32_t status = posenc_array_check(&array, p->slopes, (size_t)heads, sizeof(*p->slopes),
                                        "params.slopes", error);
    if (!status)
        status = posenc_bias_apart(&array, bias, error);
    for (int64_t h = 0; !status && h < heads; h++) {
        double product = p->slopes[h] * p->scale;
        if (!(product >= -FLT_MAX && product <= FLT_MAX))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "params.slopes[%d] is %g: must be finite, with scale (%g) too", h,
                               p->slopes[h], p->scale);
        if (p->form == POSENC_ALIBI_FALCON && !(fabs(p->slopes[h]) <= 0x1p64))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "params.slopes[%d] is %g: must be within -2^64..2^64 for FALCON", h,
                               p->slopes[h]);
    }
    return status;
}

static int32_t check_rule(const posenc_alibi_params *p, int64_t heads, posenc_error *error)
{
    if (p->heads < 1 || p->heads > 65536)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.heads is %d: must be 1..65536",
                           p->heads);
    if (p->first_head < 0 || p->first_head > p->heads)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.first_head is %d: must be 0..heads (%d)", p->first_head,
                           p->heads);
    if (heads > p->heads - p->first_head)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "bias.shape[2] is %d: must be at most heads - first_head (%d)", heads,
                           p->heads - p->first_head);
    if (!(p->max_bias > 0 && p->max_bias <= 64))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.max_bias is %g: must be > 0 and <= 64", p->max_bias);
    return POSENC_OK;
}

static int32_t check_key_positions(const posenc_alibi_params *p, const struct posenc_view *bias,
                                   posenc_error *error)
{
    const int64_t end = INT64_C(1) << 31;
    const int64_t *shape = bias->tensor->shape;
    struct posenc_array array;
    size_t count;
    if (!posenc_alibi_is_by_key(p->form))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.key_positions is given with form %d: only KEY, LAST and FALCON "
                           "count keys",
                           (int64_t)p->form);
    if (__builtin_mul_overflow((size_t)shape[0], (size_t)shape[3], &count))
        count = SIZE_MAX;
    int32_t status = posenc_array_check(&array, p->key_positions, count, sizeof(int64_t),
                                        "params.key_positions", error);
    if (!status)
        status = posenc_bias_apart(&array, bias, error);
    for (size_t i = 0; !status && i < count; i++)
        if (p->key_positions[i] < -end || p->key_positions[i] >= end)
            return posenc_fail(error, POSENC_ERROR_POSITION,
                               "params.key_positions[%d] is %d: must be -2^31..2^31 - 1",
                               posenc_size(i), p->key_positions[i]);
    return status;
}

static int32_t check_params(const posenc_alibi_params *p, posenc_error *error)
{
    if (p->form < POSENC_ALIBI_DISTANCE || p->form > POSENC_ALIBI_FALCON)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.form is %d: must be a POSENC_ALIBI_* value", (int64_t)p->form);
    if (!(p->scale > 0 && p->scale <= 0x1p64))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.scale is %g: must be > 0 and <= 2^64", p->scale);
    return posenc_flag_check(p->causal, "params.causal", error);
}

static int32_t check(struct alibi *a, const posenc_alibi_params *params, const posenc_tensor *bias,
                     posenc_error *error)
{
    struct posenc_view view;
    posenc_alibi_params *p = &a->params;
    int32_t status = posenc_struct_read(p, sizeof(*p), sizeof(*p), params, "params", error);
    if (!status)
        status = check_params(p, error);
    if (!status)
        status = posenc_kernels_choose(&a->kernels, p->isa, "params.isa", error);
    if (!status)
        status = posenc_view_check(&view, bias, "bias", error);
    if (!status)
        status = posenc_writable_check(&view, error);
    if (!status)
        status = posenc_bias_distances(bias->shape[1], bias->shape[3], p->query_offset, error);
    if (!status)
        status = p->slopes ? check_slopes(p, &view, error) : check_rule(p, bias->shape[2], error);
    if (!status && p->key_positions)
        status = check_key_positions(p, &view, error);
    return status;
}

int32_t posenc_alibi_bias(const posenc_alibi_params *params, const posenc_tensor *bias,
                          posenc_error *error)
{
    struct alibi a;
    int32_t status = check(&a, params, bias, error);
    if (status)
        return status;
    a.dtype = bias->dtype;
    a.keys = bias->shape[3];
    const int by_key = posenc_alibi_is_by_key(a.params.form);
    const struct posenc_bias_source source = {&a,         a.kernels, by_key,
                                              next_heads, next_tile, make_line};
    posenc_bias_fill(&source, bias, a.params.query_offset, a.params.causal);
    return POSENC_OK;
}
