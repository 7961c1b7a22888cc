/* SPDX-License-Identifier: MIT */
/* Checks of the fields that a scaling reads. */
#include "plan_check.h"

enum { MAX_FACTORS = 65536 };

static const char FACTOR_RANGE[] = "2^-64..2^64";
static const char GIVEN_OR_RULE[] = "2^-64..2^64, or 0 for the rule";

/* The factors of LINEAR: a list, or the one. */
static int32_t check_linear(const posenc_rope_params *p, posenc_error *error)
{
    if (!p->factors != !p->num_factors || p->num_factors < 0 ||
        p->num_factors > MAX_FACTORS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "num_factors is %d: must be 1..%d with factors, 0 without",
                           (int64_t)p->num_factors, (int64_t)MAX_FACTORS);
    for (int32_t i = 0; i < p->num_factors; i++)
        if (!in_factor_range(p->factors[i]))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "factors[%d] is %g: must be %s",
                               (int64_t)i, p->factors[i], FACTOR_RANGE);
    return p->factors ? POSENC_OK
                      : need(in_factor_range(p->factor), "factor", p->factor, FACTOR_RANGE, error);
}

static int32_t check_llama3(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = need(in_factor_range(p->low_freq_factor), "low_freq_factor",
                          p->low_freq_factor, FACTOR_RANGE, error);
    if (!status)
        status = need(in_factor_range(p->high_freq_factor), "high_freq_factor",
                      p->high_freq_factor, FACTOR_RANGE, error);
    /* With equal factors the blend divides by zero, so their meaning would be a guess. */
    if (!status && !(p->low_freq_factor < p->high_freq_factor))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "low_freq_factor is %g: must be < high_freq_factor (%g)",
                           p->low_freq_factor, p->high_freq_factor);
    return status;
}

static int32_t check_yarn(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status =
        need(in_factor_range(p->beta_slow), "beta_slow", p->beta_slow, FACTOR_RANGE, error);
    if (!status)
        status =
            need(in_factor_range(p->beta_fast), "beta_fast", p->beta_fast, FACTOR_RANGE, error);
    if (!status && !(p->beta_slow <= p->beta_fast))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "beta_slow is %g: must be <= beta_fast (%g)", p->beta_slow,
                           p->beta_fast);
    if (!status)
        status = need(finite_in(p->mscale, 0, 0x1p64), "mscale", p->mscale, "0..2^64", error);
    if (!status)
        status = need(finite_in(p->mscale_all_dim, 0, 0x1p64), "mscale_all_dim", p->mscale_all_dim,
                      "0..2^64", error);
    if (!status)
        status = need(in_factor_range(p->magnitude_slope), "magnitude_slope", p->magnitude_slope,
                      FACTOR_RANGE, error);
    if (!status)
        status = check_enum(p->yarn_blend, POSENC_YARN_LINEAR, POSENC_YARN_GEOMETRIC, "yarn_blend",
                            "POSENC_YARN_LINEAR or _GEOMETRIC", error);
    return status ? status : check_enum(p->truncate, 0, 1, "truncate", "0 or 1", error);
}

static int32_t check_length(const posenc_rope_params *p, posenc_error *error)
{
    if (p->length >= 0)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "length is %d: must be >= 0 (0 = each call gives it)", p->length);
}

/* A list of r/2 divisors, whose length is the caller's promise. */
static int32_t check_divisors(const double *list, const posenc_rope_params *p, const char *name,
                              posenc_error *error)
{
    if (!list)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s is NULL: must be given for POSENC_SCALING_LONGROPE", name);
    for (int32_t i = 0; i < p->rotary_dim / 2; i++)
        if (!finite_in(list[i], 0x1p-64, 0x1p1000))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s[%d] is %g: must be %s", name,
                               (int64_t)i, list[i], "2^-64..2^1000");
    return POSENC_OK;
}

static int32_t check_longrope(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_divisors(p->short_factors, p, "short_factors", error);
    if (!status)
        status = check_divisors(p->long_factors, p, "long_factors", error);
    if (!status)
        status = need(p->factor == 0 || in_factor_range(p->factor), "factor", p->factor,
                      "2^-64..2^64, or 0 for 1", error);
    if (!status)
        status = need(p->short_attention == 0 || in_factor_range(p->short_attention),
                      "short_attention", p->short_attention, GIVEN_OR_RULE, error);
    if (!status)
        status = need(p->long_attention == 0 || in_factor_range(p->long_attention),
                      "long_attention", p->long_attention, GIVEN_OR_RULE, error);
    /* The rule divides by ln L0. */
    int by_rule = p->attention_factor == 0 && !(p->short_attention != 0 && p->long_attention != 0);
    if (!status && by_rule && p->factor > 1 && p->original_max_position == 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "original_max_position is 1: must be > 1 where factor (%g) is and "
                           "attention_factor is not given", p->factor);
    return status ? status : check_length(p, error);
}

static int32_t check_proportional(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = need(p->factor == 0 || in_factor_range(p->factor), "factor", p->factor,
                          "2^-64..2^64, or 0 for 1", error);
    if (!status && (p->rotating_pairs < 0 || p->rotating_pairs > p->rotary_dim / 2))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rotating_pairs is %d: must be 0..r/2 (%d)",
                           (int64_t)p->rotating_pairs, (int64_t)(p->rotary_dim / 2));
    return status;
}

/* What each scaling reads: the factor as such, and L0. */
static int has_own_factor_rule(int32_t scaling)
{
    return scaling == POSENC_SCALING_NONE || scaling == POSENC_SCALING_LINEAR ||
           scaling == POSENC_SCALING_LONGROPE || scaling == POSENC_SCALING_PROPORTIONAL;
}

static int has_trained_length(int32_t scaling)
{
    return scaling == POSENC_SCALING_LLAMA3 || scaling == POSENC_SCALING_YARN ||
           scaling == POSENC_SCALING_DYNAMIC_NTK || scaling == POSENC_SCALING_LONGROPE;
}

int32_t posenc_scaling_check(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status =
        check_enum(p->scaling, POSENC_SCALING_NONE, POSENC_SCALING_PROPORTIONAL, "scaling",
                   "one of POSENC_SCALING_*, 0..9", error);
    if (!status && !has_own_factor_rule(p->scaling))
        status = need(in_factor_range(p->factor), "factor", p->factor, FACTOR_RANGE, error);
    if (!status && has_trained_length(p->scaling))
        status = need(finite_in(p->original_max_position, 1, 0x1p64), "original_max_position",
                      p->original_max_position, "1..2^64", error);
    if (status)
        return status;
    switch (p->scaling) {
    case POSENC_SCALING_LINEAR:
        return check_linear(p, error);
    case POSENC_SCALING_LLAMA3:
        return check_llama3(p, error);
    case POSENC_SCALING_YARN:
        return check_yarn(p, error);
    case POSENC_SCALING_NTK_MIXED:
        return need(finite_in(p->mixed_exponent, 0, 16), "mixed_exponent", p->mixed_exponent,
                    "0..16", error);
    case POSENC_SCALING_DYNAMIC_NTK:
        return check_length(p, error);
    case POSENC_SCALING_LONGROPE:
        return check_longrope(p, error);
    case POSENC_SCALING_PROPORTIONAL:
        return check_proportional(p, error);
    default:
        return POSENC_OK;
    }
}
