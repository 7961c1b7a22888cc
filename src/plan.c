/* SPDX-License-Identifier: MIT */
/* Making plans: every parameter checked, then frequencies and row tables. */
#include "plan.h"

#include <stdlib.h>

#include "error.h"
#include "frequencies.h"
#include "structs.h"

enum { MAX_HEAD_DIM = 65536 };
static const double MAX_FREQUENCY = 0x1p76; /* what 192 bits of 1 / 2 pi can reduce, see angle.h */

void posenc_rope_params_init(posenc_rope_params *params)
{
    *params = (posenc_rope_params){
        .struct_size = sizeof(*params),
        .base = 10000,
        .beta_fast = 32,
        .beta_slow = 1,
        .truncate = 1,
    };
}

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
    status = need(in_factor_range(p->factor), "factor", p->factor, FACTOR_RANGE, error);
    if (!status && p->scaling != POSENC_SCALING_LINEAR)
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

static int32_t check_params(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_widths(p, error);
    if (!status)
        status = check_rest(p, error);
    if (!status)
        status = check_scaling(p, error);
    if (!status)
        status = check_frequencies(p, error);
    return status ? status : check_tables(p, error);
}

static struct posenc_range range_of(const posenc_rope_params *p)
{
    struct posenc_range range = {INT32_MIN, INT32_MAX, "32-bit positions"};
    if (p->cos_table)
        range = (struct posenc_range){0, p->cos_rows - 1, "rows of the table"};
    if (range.high > INT32_MAX)
        range.high = INT32_MAX;
    if (p->max_position && p->max_position - 1 < range.high) {
        range.high = p->max_position - 1;
        range.why = "max_position";
    }
    return range;
}

/* Everything that needs memory. 0 when there is none. */
static int fill(struct posenc_plan *plan, const posenc_rope_params *p)
{
    size_t pairs = (size_t)plan->pairs, count = (pairs + POSENC_ROW_BLOCK - 1) / POSENC_ROW_BLOCK;
    plan->inv_freq = malloc(pairs * sizeof(double));
    if (!plan->inv_freq)
        return 0;
    posenc_frequencies(p, plan->inv_freq);
    if (p->recipe == POSENC_RECIPE_HF_F32) {
        plan->inv_freq_f32 = malloc(pairs * sizeof(float));
        if (!plan->inv_freq_f32)
            return 0;
        posenc_frequencies_hf_f32(p, plan->inv_freq_f32);
        for (size_t i = 0; i < pairs; i++)
            plan->inv_freq[i] = plan->inv_freq_f32[i];
        return 1;
    }
    plan->blocks = aligned_alloc(64, count * sizeof(struct posenc_row_block));
    if (!plan->blocks)
        return 0;
    for (size_t b = 0; b < count; b++) {
        size_t rest = pairs - b * POSENC_ROW_BLOCK;
        posenc_row_block_init(&plan->blocks[b], plan->inv_freq + b * POSENC_ROW_BLOCK,
                              rest < POSENC_ROW_BLOCK ? (int)rest : POSENC_ROW_BLOCK);
    }
    return 1;
}

int32_t posenc_plan_create(posenc_plan **plan, const posenc_rope_params *params,
                           posenc_error *error)
{
    posenc_rope_params p;
    posenc_rope_params_init(&p);
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL: must be given");
    int32_t status = posenc_struct_read(&p, sizeof(p), sizeof(p), params, "params", error);
    if (!status)
        status = check_params(&p, error);
    const struct posenc_kernels *kernels = NULL;
    if (!status)
        status = posenc_kernels_choose(&kernels, p.isa, "isa", error);
    if (status)
        return status;
    struct posenc_plan *made = malloc(sizeof(*made));
    if (!made)
        return posenc_fail(error, POSENC_ERROR_MEMORY, "no memory for a plan");
    *made = (struct posenc_plan){
        .kernels = kernels,
        .layout = p.layout,
        .head_dim = p.head_dim,
        .rotary_dim = p.rotary_dim,
        .rotary_offset = p.rotary_offset,
        .pairs = p.rotary_dim / 2,
        .rows_by = p.cos_table ? POSENC_ROWS_TABLE
                               : p.recipe ? POSENC_ROWS_HF_F32 : POSENC_ROWS_EXACT,
        .row_dtype = p.row_dtype ? p.row_dtype : POSENC_F32,
        .attention_factor = posenc_attention_factor(&p),
        .range = range_of(&p),
        .cos_table = p.cos_table,
        .sin_table = p.sin_table,
    };
    if (!p.cos_table && !fill(made, &p)) {
        posenc_plan_free(made);
        return posenc_fail(error, POSENC_ERROR_MEMORY, "no memory for a plan of %d pairs",
                           (int64_t)(p.rotary_dim / 2));
    }
    *plan = made;
    return POSENC_OK;
}

int32_t posenc_plan_create_simple(posenc_plan **plan, int32_t layout, int32_t head_dim,
                                  double base, posenc_error *error)
{
    posenc_rope_params params;
    posenc_rope_params_init(&params);
    if (head_dim % 2)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "head_dim is %d: must be even",
                           (int64_t)head_dim);
    params.layout = layout;
    params.head_dim = head_dim;
    params.rotary_dim = head_dim;
    params.base = base;
    return posenc_plan_create(plan, &params, error);
}

void posenc_plan_free(posenc_plan *plan)
{
    if (!plan)
        return;
    free(plan->inv_freq);
    free(plan->inv_freq_f32);
    free(plan->blocks);
    free(plan);
}

int32_t posenc_plan_pairs(const posenc_plan *plan)
{
    return plan ? plan->pairs : 0;
}

double posenc_plan_attention_factor(const posenc_plan *plan)
{
    return plan ? plan->attention_factor : 0;
}

int32_t posenc_plan_isa(const posenc_plan *plan)
{
    return plan ? plan->kernels->isa : 0;
}

int32_t posenc_plan_inv_freq(const posenc_plan *plan, double *inv_freq, size_t count,
                             posenc_error *error)
{
    if (!plan || !inv_freq)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given",
                           plan ? "inv_freq" : "plan");
    if (count != (size_t)plan->pairs)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "count is %d: must be r/2 (%d)",
                           count > INT64_MAX ? INT64_MAX : (int64_t)count, (int64_t)plan->pairs);
    if (!plan->inv_freq)
        return posenc_fail(error, POSENC_ERROR_UNSUPPORTED,
                           "plan was made from tables: it has no frequencies");
    memcpy(inv_freq, plan->inv_freq, count * sizeof(double));
    return POSENC_OK;
}
