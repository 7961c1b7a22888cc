/* SPDX-License-Identifier: MIT */
/* Rows as ggml computes them on a CPU: a float32 recurrence over the pairs (docs/schemes.md). */
#include "rows_ggml.h"

#include "angle.h"
#include "dd.h"
#include "frequencies.h"
#include "plan.h"
#include "rows.h"

static float pow_f32(float base, float exponent)
{
    return posenc_power_f32(base, posenc_dd_log((double)base), (double)exponent);
}

/* The pair that turns `turns` times in the original context. */
static float corr_dim(const posenc_rope_params *p, float turns)
{
    const float pi = 0x1.921fb6p+1f, dims = (float)p->rotary_dim;
    float ratio = (float)p->original_max_position / (turns * 2 * pi);
    return dims * posenc_log_f32(ratio) / (2 * posenc_log_f32((float)p->base));
}

static float floor_f32(float x)
{
    return (float)posenc_dd_floor(posenc_dd_from((double)x));
}

/* "alpha" changes the base when a model is loaded. */
static float base_of(const posenc_rope_params *p)
{
    const float base = (float)p->base, r = (float)p->rotary_dim;
    if (p->scaling != POSENC_SCALING_NTK || p->rotary_dim == 2)
        return base;
    return base * pow_f32((float)p->factor, r / (r - 2));
}

void posenc_ggml_prepare(const posenc_rope_params *p, struct posenc_ggml *ggml)
{
    *ggml = (struct posenc_ggml){.freq_scale = 1};
    ggml->theta_scale = pow_f32(base_of(p), -2.0f / (float)p->rotary_dim);
    if (p->scaling == POSENC_SCALING_LINEAR || p->scaling == POSENC_SCALING_YARN ||
        (p->scaling == POSENC_SCALING_PROPORTIONAL && p->factor != 0))
        ggml->freq_scale = 1.0f / (float)p->factor;
    ggml->yarn = p->scaling == POSENC_SCALING_YARN;
    if (!ggml->yarn)
        return;
    const float last = (float)(p->rotary_dim - 1);
    const float low = floor_f32(corr_dim(p, (float)p->beta_fast));
    const float high = -floor_f32(-corr_dim(p, (float)p->beta_slow));
    ggml->low = low > 0 ? low : 0;
    ggml->high = high < last ? high : last;
}

void posenc_ggml_divisors(const posenc_rope_params *p, int32_t set, const double *inv_freq,
                          float *divisors)
{
    const int32_t pairs = p->rotary_dim / 2;
    const double *given = NULL;
    if (p->frequency_source == POSENC_FREQUENCIES_DIVISORS)
        given = p->frequencies;
    if (p->scaling == POSENC_SCALING_LONGROPE)
        given = set ? p->long_factors : p->short_factors;
    for (int32_t i = 0; i < pairs; i++)
        divisors[i] = given ? (float)given[i] : 1;
    if (p->scaling == POSENC_SCALING_PROPORTIONAL)
        for (int32_t i = p->rotating_pairs; i < pairs; i++)
            divisors[i] = 1e30f;
    if (p->scaling != POSENC_SCALING_LLAMA3)
        return;
    posenc_rope_params plain = *p;
    plain.scaling = POSENC_SCALING_NONE;
    for (int32_t i = 0; i < pairs; i++) {
        double w;
        posenc_frequencies(&plain, 0, 0, i, 1, &w);
        divisors[i] = (float)(w / inv_freq[i]);
    }
}

/* YaRN blends angles, not frequencies. */
static float angle_of(const struct posenc_ggml *g, int32_t pair, float extrapolated)
{
    float interpolated = g->freq_scale * extrapolated;
    if (!g->yarn)
        return interpolated;
    float range = g->high - g->low > 0.001f ? g->high - g->low : 0.001f;
    float y = ((float)pair - g->low) / range;
    float ramp = 1 - (y < 0 ? 0 : y > 1 ? 1 : y);
    return interpolated * (1 - ramp) + extrapolated * ramp;
}

/* Angles of -p are those of p negated, operation by operation. */
static void fill_token(const struct posenc_rows_span *span, size_t t,
                       const struct posenc_rows_target *to)
{
    const posenc_plan *plan = span->plan;
    const struct posenc_frequency_set *set = &plan->sets[posenc_rows_set(span, t)];
    const float mscale = (float)set->attention_factor;
    float theta[4], *cos = to->cos, *sin = to->sin;
    int negative[4];
    for (int a = 0; a < plan->axes; a++) {
        int64_t p = posenc_position(span->positions, a, span->batch, span->token + (int64_t)t);
        negative[a] = p < 0;
        theta[a] = (float)(p < 0 ? -p : p);
    }
    for (size_t i = 0; i < to->first + to->count; i++) {
        if (i >= to->first) {
            const int a = plan->axis_of_pair ? plan->axis_of_pair[i] : 0;
            const ptrdiff_t at = (ptrdiff_t)t * to->stride + (ptrdiff_t)(i - to->first);
            float s, c;
            posenc_sincos_f32(
                angle_of(&plan->ggml, (int32_t)i, theta[a] / set->inv_freq_f32[i]), &s, &c);
            cos[at] = c * mscale;
            sin[at] = (negative[a] ? -s : s) * mscale;
        }
        for (int a = 0; a < plan->axes; a++)
            theta[a] *= plan->ggml.theta_scale;
    }
}

void posenc_rows_ggml(const struct posenc_rows_span *span, const struct posenc_rows_target *to)
{
    for (size_t t = 0; t < span->tokens; t++)
        fill_token(span, t, to);
}
