/* SPDX-License-Identifier: MIT */
/* Parameters -> attention factor and softmax multiplier, as nearest doubles of their formulas. */
#include "frequencies.h"

#include "yarn.h"

static posenc_dd magnitude(const posenc_rope_params *p, double m)
{
    return posenc_yarn_magnitude_at(p->factor, m, p->magnitude_slope);
}

static double yarn_attention(const posenc_rope_params *p)
{
    if (p->mscale != 0.0 && p->mscale_all_dim != 0.0) {
        return posenc_dd_div(magnitude(p, p->mscale), magnitude(p, p->mscale_all_dim)).hi;
    }
    return magnitude(p, 1.0).hi;
}

/* sqrt(1 + ln s / ln L0), 1 without an extension (Ding et al. 2024, "LongRoPE"). */
static double longrope_attention(const posenc_rope_params *p)
{
    if (p->factor <= 1.0) {
        return 1.0;
    }
    posenc_dd ratio = posenc_dd_div(posenc_dd_log(p->factor),
                                    posenc_dd_log(p->original_max_position));
    return posenc_dd_sqrt(posenc_dd_add(posenc_dd_from(1.0), ratio)).hi;
}

/* LONGROPE: the factor that the caller gave for the set of this length alone, or 0. */
static double given_for_length(const posenc_rope_params *p, int64_t length)
{
    if (p->scaling != POSENC_SCALING_LONGROPE) {
        return 0.0;
    }
    int is_long = posenc_effective_length(p, length) > posenc_trained_length(p);
    return is_long ? p->long_attention : p->short_attention;
}

double posenc_attention_factor(const posenc_rope_params *params, int64_t length)
{
    double given = given_for_length(params, length);
    if (given != 0.0 || params->attention_factor != 0.0) {
        return given != 0.0 ? given : params->attention_factor;
    }
    switch (params->scaling) {
    case POSENC_SCALING_YARN:
        return yarn_attention(params);
    case POSENC_SCALING_LONGROPE:
        return longrope_attention(params);
    default:
        return 1.0;
    }
}

double posenc_softmax_multiplier(const posenc_rope_params *params)
{
    if (params->scaling != POSENC_SCALING_YARN || params->mscale_all_dim == 0.0) {
        return 1.0;
    }
    posenc_dd g = magnitude(params, params->mscale_all_dim);
    return posenc_dd_mul(g, g).hi;
}
