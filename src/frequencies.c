/* SPDX-License-Identifier: MIT */
/* Parameters -> the doubles nearest to the frequencies: one table, scaling -> its functions. */
#include "frequencies.h"

#include "dd.h"

static const posenc_dd ONE = {1.0, 0.0};

static const posenc_dd LN_TWO_PI = {0x1.d67f1c864beb5p+0, -0x1.65b5a1b7ff5dfp-54};

/* What the pairs of a set share. YARN: the range of the ramp. LLAMA3: low, high and L0, scaled. */
typedef struct exact_context {
    const posenc_rope_params *params;
    double factor;   /* of the set */
    int64_t tokens;  /* the running length */
    posenc_dd low;
    posenc_dd high;
    posenc_dd length;
    posenc_dd growth; /* NTK kinds: root of what the base is multiplied by. Exponents: ln s */
} exact_context;

/* One scaling. `prepare` may be absent; `exact` maps w = base^(-2i/r) of pair i to a frequency. */
typedef struct scaling_rule {
    void (*prepare)(exact_context *context);
    double (*exact)(const exact_context *context, int32_t pair, posenc_dd w);
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

/* w s^-m for 0 < m < 1, with growth = ln s. */
static double shrink(const exact_context *context, posenc_dd w, posenc_dd m)
{
    posenc_dd exponent = posenc_dd_negate(posenc_dd_mul(m, context->growth));
    return posenc_dd_mul(w, posenc_dd_exp(exponent)).hi;
}

static double none_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    return quotient(w, posenc_divisor(context->params, pair), 1.0);
}

static double linear_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    return quotient(w, posenc_divisor(context->params, pair), context->factor);
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
    length = length < 0x1p200 ? length : 0x1p200;
    context->length = posenc_dd_div(posenc_dd_from(length), posenc_dd_two_pi);
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
    context->growth = posenc_dd_log(context->factor);
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
    if (context->params->yarn_blend == POSENC_YARN_GEOMETRIC) {
        return shrink(context, w, posenc_dd_div(part, posenc_dd_add(part, rest)));
    }
    return blend(context, w, part, rest);
}

/*
 * A base b g^(r/(r-2)) gives b^(-i/h) g^(-i/(h-1)), h = r/2: the exponent of g is a root, too. With
 * one pair there is no h - 1, and w is 1 whatever the base.
 */
static void ntk_prepare(exact_context *context)
{
    int32_t pairs = context->params->rotary_dim / 2;
    context->growth = pairs > 1
                          ? posenc_dd_inverse_root(posenc_dd_from(context->factor), pairs - 1)
                          : ONE;
}

/* g = s N/L0 - (s - 1), without cancellation 1 + s (N - L0) / L0; never below 1. */
static void dynamic_prepare(exact_context *context)
{
    int32_t pairs = context->params->rotary_dim / 2;
    context->growth = ONE;
    if (context->tokens <= posenc_trained_length(context->params) || pairs == 1) {
        return;
    }
    posenc_dd trained = posenc_dd_from(context->params->original_max_position);
    double whole = (double)(context->tokens & ~INT64_C(1023));
    posenc_dd tokens = posenc_dd_sum(whole, (double)(context->tokens & 1023));
    posenc_dd beyond = posenc_dd_div(posenc_dd_sub(tokens, trained), trained);
    beyond = posenc_dd_mul(beyond, posenc_dd_from(context->factor));
    context->growth = posenc_dd_inverse_root(posenc_dd_add(beyond, ONE), pairs - 1);
}

static double ntk_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    return posenc_dd_mul(w, posenc_dd_power(context->growth, pair)).hi;
}

/* (b s)^(-i/h) / s^(1/h) = b^(-i/h) (s^(-1/h))^(i+1); the last power is s itself. */
static void ntk_scaled_prepare(exact_context *context)
{
    posenc_dd factor = posenc_dd_from(context->factor);
    context->growth = posenc_dd_inverse_root(factor, context->params->rotary_dim / 2);
}

static double ntk_scaled_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    if (pair + 1 == context->params->rotary_dim / 2) {
        return quotient(w, context->factor, 1.0);
    }
    return posenc_dd_mul(w, posenc_dd_power(context->growth, pair + 1)).hi;
}

static void ntk_mixed_prepare(exact_context *context)
{
    context->growth = posenc_dd_log(context->factor);
}

/* a (i+1)^B = ln s ((i+1) / h)^B: the quotient's power lies in (0, 1], and at 1 it is w / s. */
static double ntk_mixed_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    int32_t pairs = context->params->rotary_dim / 2;
    double exponent = context->params->mixed_exponent;
    if (pair + 1 == pairs || exponent == 0.0) {
        return quotient(w, context->factor, 1.0);
    }
    posenc_dd log = posenc_dd_sub(posenc_dd_log((double)pair + 1.0), posenc_dd_log((double)pairs));
    log = posenc_dd_mul(log, posenc_dd_from(exponent));
    return shrink(context, w, posenc_dd_exp(log));
}

static double longrope_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    const posenc_rope_params *p = context->params;
    int is_long = context->tokens > posenc_trained_length(p);
    return quotient(w, is_long ? p->long_factors[pair] : p->short_factors[pair], 1.0);
}

static double proportional_exact(const exact_context *context, int32_t pair, posenc_dd w)
{
    if (pair >= context->params->rotating_pairs) {
        return 0.0;
    }
    return quotient(w, context->factor != 0.0 ? context->factor : 1.0, 1.0);
}

static const scaling_rule RULES[] = {
    [POSENC_SCALING_NONE] = {NULL, none_exact},
    [POSENC_SCALING_LINEAR] = {NULL, linear_exact},
    [POSENC_SCALING_LLAMA3] = {llama3_exact_prepare, llama3_exact},
    [POSENC_SCALING_YARN] = {yarn_exact_prepare, yarn_exact},
    [POSENC_SCALING_NTK] = {ntk_prepare, ntk_exact},
    [POSENC_SCALING_NTK_SCALED] = {ntk_scaled_prepare, ntk_scaled_exact},
    [POSENC_SCALING_NTK_MIXED] = {ntk_mixed_prepare, ntk_mixed_exact},
    [POSENC_SCALING_DYNAMIC_NTK] = {dynamic_prepare, ntk_exact},
    [POSENC_SCALING_LONGROPE] = {NULL, longrope_exact},
    [POSENC_SCALING_PROPORTIONAL] = {NULL, proportional_exact},
};

/* What the caller gave is the frequency, or one division away from it. */
static void given_frequencies(const posenc_rope_params *params, int32_t first, int32_t count,
                              double *inv_freq)
{
    int periods = params->frequency_source == POSENC_FREQUENCIES_PERIODS;
    for (int32_t i = 0; i < count; i++) {
        double given = params->frequencies[first + i];
        inv_freq[i] = periods ? 1.0 / given : given + 0.0; /* -0 is 0 */
    }
}

void posenc_frequencies(const posenc_rope_params *params, int64_t length, int32_t set,
                        int32_t first, int32_t count, double *inv_freq)
{
    if (params->frequency_source == POSENC_FREQUENCIES_INVERSE ||
        params->frequency_source == POSENC_FREQUENCIES_PERIODS) {
        given_frequencies(params, first, count, inv_freq);
        return;
    }
    const scaling_rule *rule = &RULES[params->scaling];
    exact_context context = {
        .params = params,
        .factor = posenc_linear_factor(params, set),
        .tokens = posenc_effective_length(params, length),
    };
    if (rule->prepare) {
        rule->prepare(&context);
    }
    posenc_dd root = posenc_dd_inverse_root(posenc_dd_from(params->base), params->rotary_dim / 2);
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
