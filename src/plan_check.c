/* SPDX-License-Identifier: MIT */
/* Checks of every parameter of a plan; those of a scaling and of a recipe have their own file. */
#include "frequencies.h"
#include "plan.h"
#include "plan_check.h"

#include <math.h>

enum { MAX_HEAD_DIM = 65536, MAX_AXES = 4 };
static const double MAX_FREQUENCY = 0x1p76; /* what 192 bits of 1 / 2 pi can reduce, see angle.h */

static int32_t check_widths(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_enum(p->layout, POSENC_ADJACENT, POSENC_SPLIT_HALF, "layout",
                                "POSENC_ADJACENT or POSENC_SPLIT_HALF", error);
    if (!status)
        status = check_enum(p->out_layout, 0, POSENC_SPLIT_HALF, "out_layout",
                            "0, POSENC_ADJACENT or POSENC_SPLIT_HALF", error);
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

/* What each source allows, and the highest scaling that goes with it. */
static int in_source_range(int32_t source, double x)
{
    switch (source) {
    case POSENC_FREQUENCIES_INVERSE:
        return x >= 0 && x < MAX_FREQUENCY;
    case POSENC_FREQUENCIES_DIVISORS:
        return finite_in(x, 0x1p-64, 0x1p1000);
    default: /* an endless period stands still */
        return finite_in(x, 0x1p-75, 0x1p1000) || x == INFINITY;
    }
}

static const char *const SOURCE_RANGES[] = {
    [POSENC_FREQUENCIES_INVERSE] = ">= 0 and < 2^76",
    [POSENC_FREQUENCIES_DIVISORS] = "2^-64..2^1000",
    [POSENC_FREQUENCIES_PERIODS] = "2^-75..2^1000 or infinite",
};

/* Each may be tiny by itself, but a frequency is at most 1 / (divisor * factor). */
static int32_t check_divided(const posenc_rope_params *p, posenc_error *error)
{
    double factor = p->scaling == POSENC_SCALING_LINEAR ? p->factor : 1;
    int listed = p->scaling == POSENC_SCALING_LINEAR && p->factors;
    for (int32_t n = 0; listed && n < p->num_factors; n++)
        factor = n == 0 || p->factors[n] < factor ? p->factors[n] : factor;
    for (int32_t i = 0; i < p->rotary_dim / 2; i++)
        if (p->frequencies[i] * factor < 0x1p-75)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "frequencies[%d] is %g with factor %g: the product must be >= 2^-75",
                               (int64_t)i, p->frequencies[i], factor);
    return POSENC_OK;
}

static int32_t check_frequencies(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_enum(p->frequency_source, POSENC_FREQUENCIES_FORMULA,
                                POSENC_FREQUENCIES_PERIODS, "frequency_source",
                                "POSENC_FREQUENCIES_FORMULA, _INVERSE, _DIVISORS or _PERIODS",
                                error);
    if (status)
        return status;
    if ((p->frequency_source == POSENC_FREQUENCIES_FORMULA) != !p->frequencies)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "frequencies is %s: must be %s",
                           p->frequencies ? "given" : "NULL",
                           p->frequencies ? "NULL for POSENC_FREQUENCIES_FORMULA"
                                          : "given for POSENC_FREQUENCIES_INVERSE, _DIVISORS and "
                                            "_PERIODS");
    if (!p->frequencies)
        return POSENC_OK;
    int divisors = p->frequency_source == POSENC_FREQUENCIES_DIVISORS;
    int highest = divisors ? POSENC_SCALING_LINEAR : POSENC_SCALING_NONE;
    if (p->scaling > highest)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "scaling is %d: with the caller's frequencies it must be 0..%d",
                           (int64_t)p->scaling, (int64_t)highest);
    for (int32_t i = 0; i < p->rotary_dim / 2; i++)
        if (!in_source_range(p->frequency_source, p->frequencies[i]))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "frequencies[%d] is %g: must be %s",
                               (int64_t)i, p->frequencies[i], SOURCE_RANGES[p->frequency_source]);
    return divisors ? check_divided(p, error) : POSENC_OK;
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

static int32_t check_reserved(const posenc_rope_params *p, posenc_error *error)
{
    static const char *const name[] = {"reserved", "reserved2", "reserved3"};
    const int32_t value[] = {p->reserved, p->reserved2, p->reserved3};
    for (int i = 0; i < 3; i++)
        if (value[i])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be 0", name[i],
                               (int64_t)value[i]);
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
        status = check_enum(p->recipe, POSENC_RECIPE_EXACT, POSENC_RECIPE_GGML, "recipe",
                            "POSENC_RECIPE_EXACT, _HF_F32, _VLLM or _GGML", error);
    if (!status)
        status = check_enum(p->row_dtype, 0, POSENC_BF16, "row_dtype",
                            "0, POSENC_F32, POSENC_F16 or POSENC_BF16", error);
    if (!status && p->row_dtype > POSENC_F32 && p->recipe != POSENC_RECIPE_HF_F32 &&
        p->recipe != POSENC_RECIPE_VLLM)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "row_dtype is %d: must be 0 or POSENC_F32 unless recipe is HF_F32 or "
                           "VLLM", (int64_t)p->row_dtype);
    if (!status && p->max_position < 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "max_position is %d: must be >= 0 (0 = no limit)", p->max_position);
    return status ? status : check_reserved(p, error);
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

/* The decay is defined for one position and frequencies that fall by a formula. */
static int32_t check_xpos(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_enum(p->xpos, POSENC_XPOS_KEYS, POSENC_XPOS_QUERIES, "xpos",
                                "POSENC_XPOS_NONE, _QUERIES or _KEYS", error);
    if (status || p->xpos == POSENC_XPOS_NONE)
        return status;
    if (p->recipe || p->frequency_source || p->cos_table || p->axes > 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "xpos is %d: recipe and frequency_source must be 0, cos_table NULL, "
                           "axes 0 or 1", (int64_t)p->xpos);
    if (p->xpos_center < INT32_MIN || p->xpos_center > INT32_MAX)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "xpos_center is %d: must be -2^31..2^31 - 1", p->xpos_center);
    return need(in_factor_range(p->xpos_scale_base), "xpos_scale_base", p->xpos_scale_base,
                "2^-64..2^64", error);
}

/* Large factors and magnitudes multiply, and rows have float32 alone. */
static int32_t check_attention(const posenc_rope_params *p, posenc_error *error)
{
    double factor = posenc_attention_factor(p, 0);
    if (in_factor_range(factor))
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "factor is %g: the attention factor by the rule is %g, must be 2^-64..2^64",
                       p->factor, factor);
}

int32_t posenc_rope_params_check(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_widths(p, error);
    if (!status)
        status = check_rest(p, error);
    if (!status)
        status = check_axes(p, error);
    if (!status)
        status = posenc_scaling_check(p, error);
    if (!status)
        status = check_frequencies(p, error);
    if (!status)
        status = check_tables(p, error);
    if (!status)
        status = check_xpos(p, error);
    if (!status)
        status = posenc_recipe_check(p, error);
    return status ? status : check_attention(p, error);
}
