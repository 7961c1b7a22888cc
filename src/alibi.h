/* SPDX-License-Identifier: MIT */
/* One value of ALiBi: what a bias and attention are made of. Parameters are checked. */
#ifndef POSENC_ALIBI_H
#define POSENC_ALIBI_H

#include "float16.h"

static inline int posenc_alibi_is_by_key(int32_t form)
{
    return form == POSENC_ALIBI_KEY || form == POSENC_ALIBI_LAST || form == POSENC_ALIBI_FALCON;
}

/* What the slope multiplies in the forms that count from the query: x = key - query. */
static inline double posenc_alibi_from_query(int32_t form, double x)
{
    return x < 0 ? x : form == POSENC_ALIBI_ABS ? -x : 0;
}

/* The same in the forms that count keys; `position` is the key, or what stands for it. */
static inline int64_t posenc_alibi_from_key(int32_t form, int64_t position, int64_t keys)
{
    return position - (form == POSENC_ALIBI_LAST ? keys - 1 : 0);
}

/* As Falcon does it: slope, position and product are bf16; then the scale, in float32. */
static inline float posenc_alibi_falcon(double slope, double distance, float scale)
{
    float by = posenc_bf16_to_f32(posenc_f32_to_bf16((float)slope));
    float key = posenc_bf16_to_f32(posenc_f32_to_bf16((float)distance));
    return posenc_bf16_to_f32(posenc_f32_to_bf16(by * key)) * scale;
}

/* The bias in float32, of a slope and what it multiplies. The addition makes +0 of -0. */
static inline float posenc_alibi_value(const posenc_alibi_params *p, double slope, double distance)
{
    if (p->form == POSENC_ALIBI_FALCON)
        return posenc_alibi_falcon(slope, distance, (float)p->scale);
    return (float)(distance * (slope * p->scale) + 0.0);
}

/* The slope of a head of the bias. */
static inline double posenc_alibi_slope(const posenc_alibi_params *p, int64_t head)
{
    double slope = 0;
    if (p->slopes)
        return p->slopes[head];
    posenc_alibi_slopes(&slope, p->first_head + head, 1, p->heads, p->max_bias, NULL);
    return slope;
}

#endif
