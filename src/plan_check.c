/* SPDX-License-Identifier: MIT */
/* Checks of every parameter of a plan. */
#include "error.h"
#include "plan.h"

enum { MAX_HEAD_DIM = 65536, MAX_AXES = 4, MAX_FACTORS = 65536 };
static const double MAX_FREQUENCY = 0x1p76; /* what 192 bits of 1 / 2 pi can reduce, see angle.h */

/* Comparisons are written so that NaN fails them. */
static int32_t need(int holds, const char *name, double value, const char *rule,
                    posenc_error *error)
{
    if (holds)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %g: must be %s", name, value, rule);
}

static int finite_in(double x, double low, double high)
{
    return x >= low && x <= high;
}

/* Factors that no model comes near, so that no product of a few can overflow or underflow. */
static int in_factor_range(double x)
{
    return finite_in(x, 0x1p-64, 0x1p64);
}

static const char FACTOR_RANGE[] = "2^-64..2^64";

static int32_t check_enum(int32_t value, int32_t first, int32_t last, const char *name,
                          const char *rule, posenc_error *error)
{
    if (value >= first && value <= last)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be %s", name, (int64_t)value,
                       rule);
}

static int32_t check_widths(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_enum(p->layout, POSENC_ADJACENT, POSENC_SPLIT_HALF, "layout",
                                "POSENC_ADJACENT or POSENC_SPLIT_HALF", error);
    if (status)
        return status;
    if (p->head_dim < 2 || p->head_dim > MAX_HEAD_DIM)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "head_dim is %d: must be 2..%d",
                           (int64_t)p->head_dim, (int64_t)MAX_HEAD_DIM);
    if (p->rotary_dim < 2 || p->rotary_dim > p->head_dim || p->rotary_dim % 2)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rotary_dim is %d: must be even and 2..head_dim (%d)",
                           (int64_t)p->rotary_dim, (int64_t)p->head_dim);
    if (p->rotary_offset < 0 || p->rotary_offset > p->head_dim - p->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rotary_offset is %d: must be 0..head_dim - rotary_dim (%d)",
                           (int64_t)p->rotary_offset, (int64_t)(p->head_dim - p->rotary_dim));
    return POSENC_OK;
}

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
    return status ? status : check_enum(p->truncate, 0, 1, "truncate", "0 or 1", error);
}

static int32_t check_scaling(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status =
        check_enum(p->scaling, POSENC_SCALING_NONE, POSENC_SCALING_YARN, "scaling",
                   "POSENC_SCALING_NONE, _LINEAR, _LLAMA3 or _YARN", error);
    if (status || p->scaling == POSENC_SCALING_NONE)
        return status;
    if (p->scaling == POSENC_SCALING_LINEAR)
        return check_linear(p, error);
    status = need(in_factor_range(p->factor), "factor", p->factor, FACTOR_RANGE, error);
    if (!status)
        status = need(finite_in(p->original_max_position, 1, 0x1p64), "original_max_position",
                      p->original_max_position, "1..2^64", error);
    if (!status && p->scaling == POSENC_SCALING_LLAMA3)
        status = check_llama3(p, error);
    if (!status && p->scaling == POSENC_SCALING_YARN)
        status = check_yarn(p, error);
    return status;
}

static int32_t check_frequencies(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status =
        check_enum(p->frequency_source, POSENC_FREQUENCIES_FORMULA, POSENC_FREQUENCIES_DIVISORS,
                   "frequency_source", "POSENC_FREQUENCIES_FORMULA, _INVERSE or _DIVISORS", error);
    if (status)
        return status;
    if ((p->frequency_source == POSENC_FREQUENCIES_FORMULA) != !p->frequencies)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "frequencies is %s: must be %s",
                           p->frequencies ? "given" : "NULL",
                           p->frequencies ? "NULL for POSENC_FREQUENCIES_FORMULA"
                                          : "given for POSENC_FREQUENCIES_INVERSE and _DIVISORS");
    if (!p->frequencies)
        return POSENC_OK;
    int divisors = p->frequency_source == POSENC_FREQUENCIES_DIVISORS;
    int highest = divisors ? POSENC_SCALING_LINEAR : POSENC_SCALING_NONE;
    if (p->scaling > highest)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "scaling is %d: with the caller's frequencies it must be 0..%d",
                           (int64_t)p->scaling, (int64_t)highest);
    for (int i = 0; i < p->rotary_dim / 2; i++) {
        double x = p->frequencies[i];
        if (!(divisors ? finite_in(x, 0x1p-64, 0x1p1000) : x >= 0 && x < MAX_FREQUENCY))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "frequencies[%d] is %g: must be %s", (int64_t)i, x,
                               divisors ? "2^-64..2^1000" : ">= 0 and < 2^76");
    }
    /* Each may be tiny by itself, but a frequency is at most 1 / (divisor * factor). */
    double factor = p->scaling == POSENC_SCALING_LINEAR ? p->factor : 1;
    for (int i = 0; divisors && i < p->rotary_dim / 2; i++)
        if (p->frequencies[i] * factor < 0x1p-75)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "frequencies[%d] is %g with factor %g: the product must be >= 2^-75",
                               (int64_t)i, p->frequencies[i], factor);
    return POSENC_OK;
}

static int32_t check_tables(const posenc_rope_params *p, posenc_error *error)
{
    if (!p->cos_table && !p->sin_table) {
        if (p->cos_rows || p->sin_rows)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "cos_rows is %d and sin_rows %d: must be 0 without tables",
                               p->cos_rows, p->sin_rows);
        return POSENC_OK;
    }
    if (!p->cos_table || !p->sin_table)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: both tables must be given",
                           p->cos_table ? "sin_table" : "cos_table");
    if (((uintptr_t)p->cos_table | (uintptr_t)p->sin_table) % sizeof(float))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "cos_table or sin_table is not aligned to its elements of 4 bytes");
    if (p->cos_rows < 1 || p->cos_rows != p->sin_rows)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "cos_rows is %d and sin_rows %d: must be equal and >= 1", p->cos_rows,
                           p->sin_rows);
    if (p->cos_rows > PTRDIFF_MAX / (int64_t)sizeof(float) / (p->rotary_dim / 2))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "cos_rows is %d: %d entries a row do not fit the address space",
                           p->cos_rows, (int64_t)(p->rotary_dim / 2));
    if (p->scaling != POSENC_SCALING_NONE || p->frequency_source != POSENC_FREQUENCIES_FORMULA ||
        p->recipe != POSENC_RECIPE_EXACT)
        return posenc_fail(
            error, POSENC_ERROR_ARGUMENT,
            "cos_table is given: scaling, frequency_source and recipe must be 0, they "
            "are %d, %d, %d",
            (int64_t)p->scaling, (int64_t)p->frequency_source, (int64_t)p->recipe);
    return POSENC_OK;
}

static int32_t check_rest(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status =
        need(p->base > 1 && p->base < MAX_FREQUENCY, "base", p->base, "> 1 and < 2^76", error);
    if (!status)
        status = need(p->attention_factor == 0 || in_factor_range(p->attention_factor),
                      "attention_factor", p->attention_factor, "2^-64..2^64, or 0 for the rule",
                      error);
    if (!status)
        status = check_enum(p->recipe, POSENC_RECIPE_EXACT, POSENC_RECIPE_HF_F32, "recipe",
                            "POSENC_RECIPE_EXACT or _HF_F32", error);
    if (!status)
        status = check_enum(p->row_dtype, 0, POSENC_BF16, "row_dtype",
                            "0, POSENC_F32, POSENC_F16 or POSENC_BF16", error);
    if (!status && p->row_dtype > POSENC_F32 && p->recipe != POSENC_RECIPE_HF_F32)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "row_dtype is %d: must be 0 or POSENC_F32 unless recipe is HF_F32",
                           (int64_t)p->row_dtype);
    if (!status && p->max_position < 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "max_position is %d: must be >= 0 (0 = no limit)", p->max_position);
    if (!status && p->reserved)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "reserved is %d: must be 0",
                           (int64_t)p->reserved);
    return status;
}

static int32_t check_axes(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_enum(p->axes, 0, MAX_AXES, "axes", "1..4, or 0 for 1", error);
    for (int32_t i = 0; !status && p->axis_of_pair && i < p->rotary_dim / 2; i++)
        if (p->axis_of_pair[i] < 0 || p->axis_of_pair[i] >= (p->axes ? p->axes : 1))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "axis_of_pair[%d] is %d: must be 0..%d (axes - 1)", (int64_t)i,
                               (int64_t)p->axis_of_pair[i],
                               (int64_t)(p->axes ? p->axes - 1 : 0));
    return status;
}

int32_t posenc_rope_params_check(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_widths(p, error);
    if (!status)
        status = check_rest(p, error);
    if (!status)
        status = check_axes(p, error);
    if (!status)
        status = check_scaling(p, error);
    if (!status)
        status = check_frequencies(p, error);
    return status ? status : check_tables(p, error);
}
