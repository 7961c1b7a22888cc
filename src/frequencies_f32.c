/* SPDX-License-Identifier: MIT */
/* Frequencies in float32 as transformers and vLLM have them: one table, scaling -> operations. */
#include "frequencies.h"

#include "dd.h"

#include <math.h>

/* What the pairs of a set share; low and high are doubles, as in Python. */
typedef struct f32_context {
    const posenc_rope_params *params;
    double factor;  /* of the set */
    int64_t tokens; /* the running length */
    float base;
    double low;    /* YARN: the range of the ramp. LLAMA3: wavelengths */
    double high;
    float divisor; /* NTK_SCALED: s^(2/r). NTK_MIXED: a */
} f32_context;

/* One scaling: `prepare` may be absent, `value` maps base^(2i/r) to the frequency of pair i. */
typedef struct f32_rule {
    void (*prepare)(f32_context *context);
    float (*value)(const f32_context *context, int32_t pair, float power);
} f32_rule;

/* x^y in double, correctly rounded: Python's x ** y. */
static double power_f64(double x, double y)
{
    if (y == 2.0) {
        return x * x;
    }
    return posenc_dd_exp(posenc_dd_mul(posenc_dd_log(x), posenc_dd_from(y))).hi;
}

static float exp_f32(float x)
{
    return posenc_dd_round_float(posenc_dd_exp(posenc_dd_from((double)x)));
}

static float none_value(const f32_context *context, int32_t pair, float power)
{
    (void)context;
    (void)pair;
    return 1.0f / power;
}

/* vLLM divides the positions in place of the frequencies. */
static float linear_value(const f32_context *context, int32_t pair, float power)
{
    (void)pair;
    int positions = context->params->recipe == POSENC_RECIPE_VLLM;
    return positions ? 1.0f / power : 1.0f / power / (float)context->factor;
}

static void llama3_prepare(f32_context *context)
{
    const posenc_rope_params *p = context->params;
    context->low = p->original_max_position / p->low_freq_factor;
    context->high = p->original_max_position / p->high_freq_factor;
}

/*
 * A scalar divided by a tensor is, in torch, the tensor's reciprocal times the scalar. An empty
 * range with the wavelength exactly on it divides by 0 there; here it counts as low.
 */
static float llama3_value(const f32_context *context, int32_t pair, float power)
{
    (void)pair;
    const posenc_rope_params *p = context->params;
    float factor = (float)context->factor, w = 1.0f / power;
    float wavelength = 1.0f / w * (float)(posenc_dd_two_pi.hi);
    float scaled = wavelength > (float)context->low ? w / factor : w;
    if (wavelength < (float)context->high || wavelength > (float)context->low) {
        return scaled;
    }
    float turns = 1.0f / wavelength * (float)p->original_max_position;
    float range = (float)(p->high_freq_factor - p->low_freq_factor);
    float t = range > 0.0f ? (turns - (float)p->low_freq_factor) / range : 0.0f;
    return (1.0f - t) * scaled / factor + t * scaled;
}

/* c(n) as Python's doubles give it, with correctly rounded logarithms. */
static double yarn_pair(const posenc_rope_params *p, double turns)
{
    double log = posenc_dd_log(p->original_max_position / (turns * 2.0 * posenc_dd_pi.hi)).hi;
    return (double)p->rotary_dim * log / (2.0 * posenc_dd_log(p->base).hi);
}

static void yarn_prepare(f32_context *context)
{
    const posenc_rope_params *p = context->params;
    double low = yarn_pair(p, p->beta_fast), high = yarn_pair(p, p->beta_slow);
    double last = (double)p->rotary_dim - 1.0;
    if (p->truncate) {
        low = posenc_dd_floor(posenc_dd_from(low));
        high = -posenc_dd_floor(posenc_dd_from(-high));
    }
    context->low = low > 0.0 ? low : 0.0;
    context->high = high < last ? high : last;
    context->high += context->low == context->high ? 0.001 : 0.0;
}

static float yarn_value(const f32_context *context, int32_t pair, float power)
{
    float extrapolated = 1.0f / power;
    float interpolated = 1.0f / ((float)context->factor * power);
    float ramp = ((float)pair - (float)context->low) / (float)(context->high - context->low);
    float mask = 1.0f - (ramp < 0.0f ? 0.0f : ramp > 1.0f ? 1.0f : ramp);
    return interpolated * (1.0f - mask) + extrapolated * mask;
}

/* r / (r - 2), the exponent that leaves the lowest frequency divided by the factor. */
static double ntk_exponent(const posenc_rope_params *p)
{
    return (double)p->rotary_dim / ((double)p->rotary_dim - 2.0);
}

static void ntk_prepare(f32_context *context)
{
    const posenc_rope_params *p = context->params;
    context->base = (float)(p->base * power_f64(context->factor, ntk_exponent(p)));
}

static void ntk_scaled_prepare(f32_context *context)
{
    const posenc_rope_params *p = context->params;
    context->base = (float)(p->base * context->factor);
    context->divisor = (float)power_f64(context->factor, 2.0 / (double)p->rotary_dim);
}

static float ntk_scaled_value(const f32_context *context, int32_t pair, float power)
{
    (void)pair;
    return 1.0f / power / context->divisor;
}

static void ntk_mixed_prepare(f32_context *context)
{
    const posenc_rope_params *p = context->params;
    double pairs = (double)p->rotary_dim / 2.0;
    context->divisor = posenc_log_f32((float)context->factor) /
                       (float)power_f64(pairs, p->mixed_exponent);
}

static float ntk_mixed_value(const f32_context *context, int32_t pair, float power)
{
    float k = (float)(pair + 1), exponent = (float)context->params->mixed_exponent;
    float step = posenc_power_f32(k, posenc_dd_log((double)k), (double)exponent);
    return 1.0f / power / exp_f32(context->divisor * step);
}

/*
 * transformers has the running length as a tensor, so that the new base is a float32 computation
 * (but torch leaves the exponent, a Python number, a double where the tensor is a single number);
 * up to L0 the base is the first one. vLLM fills its table once, in doubles: for the length that
 * the plan fixes, or for L0 s, as its earlier versions do.
 */
static void dynamic_prepare(f32_context *context)
{
    const posenc_rope_params *p = context->params;
    double trained = p->original_max_position, s = context->factor;
    if (p->recipe == POSENC_RECIPE_VLLM) {
        double longest = p->length > 0 ? (double)p->length : trained * s;
        longest = longest > trained ? longest : trained;
        double growth = s * longest / trained - (s - 1.0);
        context->base = (float)(p->base * power_f64(growth, ntk_exponent(p)));
        return;
    }
    if (context->tokens <= posenc_trained_length(p)) {
        return;
    }
    float growth = (float)s * (float)context->tokens / (float)trained - (float)(s - 1.0);
    posenc_dd log = posenc_dd_log((double)growth);
    context->base = (float)p->base * posenc_power_f32(growth, log, ntk_exponent(p));
}

static float longrope_value(const f32_context *context, int32_t pair, float power)
{
    const posenc_rope_params *p = context->params;
    int is_long = context->tokens > posenc_trained_length(p);
    return 1.0f / ((float)(is_long ? p->long_factors[pair] : p->short_factors[pair]) * power);
}

static float proportional_value(const f32_context *context, int32_t pair, float power)
{
    if (pair >= context->params->rotating_pairs) {
        return 0.0f;
    }
    return 1.0f / power / (context->factor != 0.0 ? (float)context->factor : 1.0f);
}

static const f32_rule RULES[] = {
    [POSENC_SCALING_NONE] = {NULL, none_value},
    [POSENC_SCALING_LINEAR] = {NULL, linear_value},
    [POSENC_SCALING_LLAMA3] = {llama3_prepare, llama3_value},
    [POSENC_SCALING_YARN] = {yarn_prepare, yarn_value},
    [POSENC_SCALING_NTK] = {ntk_prepare, none_value},
    [POSENC_SCALING_NTK_SCALED] = {ntk_scaled_prepare, ntk_scaled_value},
    [POSENC_SCALING_NTK_MIXED] = {ntk_mixed_prepare, ntk_mixed_value},
    [POSENC_SCALING_DYNAMIC_NTK] = {dynamic_prepare, none_value},
    [POSENC_SCALING_LONGROPE] = {NULL, longrope_value},
    [POSENC_SCALING_PROPORTIONAL] = {NULL, proportional_value},
};

void posenc_frequencies_f32(const posenc_rope_params *params, int64_t length, int32_t set,
                            int32_t first, int32_t count, float *inv_freq)
{
    const f32_rule *rule = &RULES[params->scaling];
    f32_context context = {
        .params = params,
        .factor = posenc_linear_factor(params, set),
        .tokens = posenc_effective_length(params, length),
        .base = (float)params->base,
    };
    if (rule->prepare) {
        rule->prepare(&context);
    }
    int overflow = context.base == INFINITY; /* its power 0 is 1 all the same */
    posenc_dd log = overflow ? posenc_dd_from(0.0) : posenc_dd_log((double)context.base);
    for (int32_t i = first; i < first + count; i++) {
        if (params->frequency_source == POSENC_FREQUENCIES_INVERSE) {
            inv_freq[i - first] = (float)params->frequencies[i] + 0.0f; /* -0 is 0 */
            continue;
        }
        float exponent = (float)(2 * i) / (float)params->rotary_dim;
        float power = overflow && i > 0
                          ? INFINITY
                          : posenc_power_f32(context.base, log, (double)exponent);
        inv_freq[i - first] = rule->value(&context, i, (float)posenc_divisor(params, i) * power);
    }
}
