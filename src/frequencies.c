/* SPDX-License-Identifier: MIT */
/* Parameters -> frequencies and attention factor: one table, scaling -> its functions. */
#include "frequencies.h"

#include "yarn.h"

static const posenc_dd ONE = {1.0, 0.0};

static const posenc_dd TWO_PI = {0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};

static const posenc_dd LN_TWO_PI = {0x1.d67f1c864beb5p+0, -0x1.65b5a1b7ff5dfp-54};

static const double PI = 0x1.921fb54442d18p+1;

/* What the pairs of a plan share. YARN: the range of the ramp. LLAMA3: low, high and L0, scaled. */
typedef struct exact_context {
    const posenc_rope_params *params;
    double factor; /* of the set */
    posenc_dd low;
    posenc_dd high;
    posenc_dd length;
} exact_context;

/* The same for the float32 recipe, where bounds are doubles, as in Python. */
typedef struct hf_context {
    const posenc_rope_params *params;
    double factor; /* of the set */
    double low;
    double high;
} hf_context;

/*
 * One scaling. `prepare` may be absent. `exact` maps w = base^(-2i/r) of pair i to the frequency;
 * `hf` maps base^(2i/r), the reciprocal of it. Without `attention` the factor is 1.
 */
typedef struct scaling_rule {
    void (*exact_prepare)(exact_context *context);
    double (*exact)(const exact_context *context, int32_t pair, posenc_dd w);
    void (*hf_prepare)(hf_context *context);
    float (*hf)(const hf_context *context, int32_t pair, float power);
    double (*attention)(const posenc_rope_params *params);
} scaling_rule;

/* w / (a b), brought into range first: a and b may be any positive doubles. */
static double quotient(posenc_dd w, double a, double b)
{
    int32_t a_exponent, b_exponent;
    posenc_dd divisor = posenc_dd_product(posenc_dd_mantissa(a, &a_exponent),
                                          posenc_dd_mantissa(b, &b_exponent));
    return posenc_dd_round_scaled(posenc_dd_div(w, divisor), -a_exponent - b_exponent);
}

/*
 * (w/s part + w rest) / (part + rest), where part and rest have one sign unless outside the blend.
 * Beyond 2^+-600 the factor is cut: the frequency is then out of range, or w/s without weight.
 */
static double blend(const exact_context *context, posenc_dd w, posenc_dd part, posenc_dd rest)
{
    double s = context->factor;
    s = s < 0x1p-600 ? 0x1p-600 : s > 0x1p600 ? 0x1p600 : s;
    posenc_dd sum = posenc_dd_add(posenc_dd_div(part, posenc_dd_from(s)), rest);
    return posenc_dd_mul(w, posenc_dd_div(sum, posenc_dd_add(part, rest))).hi;
}

/* The divisor of pair i that the caller gave, else 1. */
static double divisor_of(const posenc_rope_params *params, int32_t pair)
{
    int given = params->frequency_source == POSENC_FREQUENCIES_DIVISORS;
    return given ? params->frequencies[pair] : 1.0;
}

static double none_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    return quotient(w, divisor_of(context->params, pair), 1.0);
}

static float none_hf(const hf_context *context, int32_t pair, float power)
{
    (void)context;
    (void)pair;
    return 1.0f / power;
}

static double linear_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    return quotient(w, divisor_of(context->params, pair), context->factor);
}

static float linear_hf(const hf_context *context, int32_t pair, float power)
{
    (void)pair;
    return 1.0f / power / (float)context->factor;
}

/*
 * The rule compares and blends L0 w / 2 pi with low and high. It stays the same when all three are
 * multiplied by one number: high is brought into [1, 2), so that nothing overflows. For L0 beyond
 * 2^200 (w > 2^-76) every pair lies above high either way.
 */
static void llama3_exact_prepare(exact_context *context)
{
    const posenc_rope_params *p = context->params;
    int32_t exponent;
    context->high = posenc_dd_from(posenc_dd_mantissa(p->high_freq_factor, &exponent));
    double low = posenc_dd_round_scaled(posenc_dd_from(p->low_freq_factor), -exponent);
    double length = posenc_dd_round_scaled(posenc_dd_from(p->original_max_position), -exponent);
    context->low = posenc_dd_from(low);
    context->length = posenc_dd_div(posenc_dd_from(length < 0x1p200 ? length : 0x1p200), TWO_PI);
}

static double llama3_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    (void)pair;
    posenc_dd turns = posenc_dd_mul(w, context->length);
    if (posenc_dd_less(turns, context->low)) {
        return quotient(w, context->factor, 1.0);
    }
    if (posenc_dd_less(context->high, turns)) {
        return w.hi;
    }
    return blend(context, w, posenc_dd_sub(context->high, turns),
                 posenc_dd_sub(turns, context->low));
}

static void llama3_hf_prepare(hf_context *context)
{
    const posenc_rope_params *p = context->params;
    context->low = p->original_max_position / p->low_freq_factor;
    context->high = p->original_max_position / p->high_freq_factor;
}

/*
 * A scalar divided by a tensor is, in torch, the tensor's reciprocal times the scalar. An empty
 * range with the wavelength exactly on it divides by 0 there; here it counts as low.
 */
static float llama3_hf(const hf_context *context, int32_t pair, float power)
{
    (void)pair;
    const posenc_rope_params *p = context->params;
    float factor = (float)context->factor, w = 1.0f / power;
    float wavelength = 1.0f / w * (float)TWO_PI.hi;
    float scaled = wavelength > (float)context->low ? w / factor : w;
    if (wavelength < (float)context->high || wavelength > (float)context->low) {
        return scaled;
    }
    float turns = 1.0f / wavelength * (float)p->original_max_position;
    float range = (float)(p->high_freq_factor - p->low_freq_factor);
    float t = range > 0.0f ? (turns - (float)p->low_freq_factor) / range : 0.0f;
    return (1.0f - t) * scaled / factor + t * scaled;
}

/* c(n) = r ln(L0 / (2 pi n)) / (2 ln base): the pair that turns n times in the original context. */
static posenc_dd yarn_pair(const posenc_rope_params *p, double turns)
{
    posenc_dd log = posenc_dd_sub(posenc_dd_log(p->original_max_position), LN_TWO_PI);
    log = posenc_dd_sub(log, posenc_dd_log(turns));
    posenc_dd half = posenc_dd_mul(log, posenc_dd_from(0.5 * (double)p->rotary_dim));
    return posenc_dd_div(half, posenc_dd_log(p->base));
}

static void yarn_exact_prepare(exact_context *context)
{
    const posenc_rope_params *p = context->params;
    posenc_dd low = yarn_pair(p, p->beta_fast), high = yarn_pair(p, p->beta_slow);
    posenc_dd zero = posenc_dd_from(0.0), last = posenc_dd_from((double)p->rotary_dim - 1.0);
    if (p->truncate) {
        low = posenc_dd_from(posenc_dd_floor(low));
        high = posenc_dd_from(-posenc_dd_floor(posenc_dd_negate(high)));
    }
    low = posenc_dd_less(low, zero) ? zero : low;
    high = posenc_dd_less(last, high) ? last : high;
    if (low.hi == high.hi && low.lo == high.lo) {
        high = posenc_dd_add(high, posenc_dd_div(ONE, posenc_dd_from(1000.0)));
    }
    context->low = low;
    context->high = high;
}

/* low may exceed high, where L0 is far from what base spans: the formula is followed even so. */
static double yarn_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    posenc_dd i = posenc_dd_from((double)pair);
    posenc_dd part = posenc_dd_sub(i, context->low), rest = posenc_dd_sub(context->high, i);
    double sign = posenc_dd_less(context->low, context->high) ? 1.0 : -1.0;
    if (sign * part.hi <= 0.0) {
        return w.hi;
    }
    if (sign * rest.hi <= 0.0) {
        return quotient(w, context->factor, 1.0);
    }
    return blend(context, w, part, rest);
}

/* c(n) as Python's doubles give it, with correctly rounded logarithms. */
static double yarn_pair_hf(const posenc_rope_params *p, double turns)
{
    double log = posenc_dd_log(p->original_max_position / (turns * 2.0 * PI)).hi;
    return (double)p->rotary_dim * log / (2.0 * posenc_dd_log(p->base).hi);
}

static void yarn_hf_prepare(hf_context *context)
{
    const posenc_rope_params *p = context->params;
    double low = yarn_pair_hf(p, p->beta_fast), high = yarn_pair_hf(p, p->beta_slow);
    double last = (double)p->rotary_dim - 1.0;
    if (p->truncate) {
        low = posenc_dd_floor(posenc_dd_from(low));
        high = -posenc_dd_floor(posenc_dd_from(-high));
    }
    context->low = low > 0.0 ? low : 0.0;
    context->high = high < last ? high : last;
    context->high += context->low == context->high ? 0.001 : 0.0;
}

static float yarn_hf(const hf_context *context, int32_t pair, float power)
{
    float extrapolated = 1.0f / power;
    float interpolated = 1.0f / ((float)context->factor * power);
    float ramp = ((float)pair - (float)context->low) / (float)(context->high - context->low);
    float mask = 1.0f - (ramp < 0.0f ? 0.0f : ramp > 1.0f ? 1.0f : ramp);
    return interpolated * (1.0f - mask) + extrapolated * mask;
}

static double yarn_attention(const posenc_rope_params *p)
{
    if (p->mscale != 0.0 && p->mscale_all_dim != 0.0) {
        return posenc_dd_div(posenc_yarn_magnitude(p->factor, p->mscale),
                             posenc_yarn_magnitude(p->factor, p->mscale_all_dim)).hi;
    }
    return posenc_yarn_magnitude(p->factor, 1.0).hi;
}

static const scaling_rule RULES[] = {
    [POSENC_SCALING_NONE] = {NULL, none_exact, NULL, none_hf, NULL},
    [POSENC_SCALING_LINEAR] = {NULL, linear_exact, NULL, linear_hf, NULL},
    [POSENC_SCALING_LLAMA3] = {llama3_exact_prepare, llama3_exact, llama3_hf_prepare, llama3_hf,
                               NULL},
    [POSENC_SCALING_YARN] = {yarn_exact_prepare, yarn_exact, yarn_hf_prepare, yarn_hf,
                             yarn_attention},
};

void posenc_frequencies(const posenc_rope_params *params, int64_t length, int32_t set,
                        int32_t first, int32_t count, double *inv_freq)
{
    (void)length;
    if (params->frequency_source == POSENC_FREQUENCIES_INVERSE) {
        memcpy(inv_freq, params->frequencies + first, (size_t)count * sizeof *inv_freq);
        return;
    }
    const scaling_rule *rule = &RULES[params->scaling];
    exact_context context = {.params = params, .factor = posenc_linear_factor(params, set)};
    if (rule->exact_prepare) {
        rule->exact_prepare(&context);
    }
    posenc_dd root = posenc_dd_inverse_root(params->base, params->rotary_dim / 2);
    for (int32_t i = first; i < first + count; i++) {
        posenc_dd w = posenc_dd_power(root, i);
        /*
         * Where base is a power of two, w may be an exact double with a rest of rounding errors,
         * below 2^-91 for all widths. It must go: a quotient by s can lie 2^-107 from a tie.
         */
        if (w.lo < 0x1p-88 * w.hi && w.lo > -0x1p-88 * w.hi) {
            w.lo = 0.0;
        }
        inv_freq[i - first] = rule->exact(&context, i, w);
    }
}

void posenc_frequencies_f32(const posenc_rope_params *params, int64_t length, int32_t set,
                            int32_t first, int32_t count, float *inv_freq)
{
    (void)length;
    const scaling_rule *rule = &RULES[params->scaling];
    hf_context context = {.params = params, .factor = posenc_linear_factor(params, set)};
    if (rule->hf_prepare) {
        rule->hf_prepare(&context);
    }
    posenc_dd log_base = posenc_dd_log((double)(float)params->base);
    for (int32_t i = first; i < first + count; i++) {
        if (params->frequency_source == POSENC_FREQUENCIES_INVERSE) {
            inv_freq[i - first] = (float)params->frequencies[i];
            continue;
        }
        float exponent = (float)(2 * i) / (float)params->rotary_dim;
        posenc_dd log = posenc_dd_mul(log_base, posenc_dd_from((double)exponent));
        float power = posenc_dd_round_float(posenc_dd_exp(log));
        inv_freq[i - first] = rule->hf(&context, i, (float)divisor_of(params, i) * power);
    }
}

double posenc_attention_factor(const posenc_rope_params *params, int64_t length)
{
    (void)length;
    const scaling_rule *rule = &RULES[params->scaling];
    if (params->attention_factor != 0.0 || !rule->attention) {
        return params->attention_factor != 0.0 ? params->attention_factor : 1.0;
    }
    return rule->attention(params);
}
