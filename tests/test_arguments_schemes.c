/* SPDX-License-Identifier: MIT */
/* Refusals of the fields that later schemes read, and of what a recipe's system does not have. */
#include "support/test.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 32, PAIRS = WIDTH / 2 };

static double list[PAIRS], other_list[PAIRS];

/* Parameters that are accepted with every scaling. */
static posenc_rope_params good(int32_t scaling)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, WIDTH, WIDTH);

    for (int i = 0; i < PAIRS; i++) list[i] = other_list[i] = 1 + i;
    params.scaling = scaling;
    params.factor = 4;
    params.original_max_position = 2048;
    params.low_freq_factor = 1;
    params.high_freq_factor = 4;
    params.short_factors = list;
    params.long_factors = other_list;
    params.mixed_exponent = 0.65;
    params.rotating_pairs = 4;
    return params;
}

static void refuse(const posenc_rope_params *params, const char *words)
{
    posenc_plan *plan = NULL;
    posenc_error error = {0, ""};

    test_refused(posenc_plan_create(&plan, params, &error), POSENC_ERROR_ARGUMENT, &error, words);
    assert_null(plan);
}

static void accept(const posenc_rope_params *params)
{
    posenc_plan_free(test_plan(params));
}

/* One field set to one value that is refused, with the name and the value in the text. */
struct wrong {
    int32_t scaling;
    size_t offset;
    const char *name;
    int is_double;
    double value;
};

#define INT(scaling, field, value) \
    {scaling, offsetof(posenc_rope_params, field), #field, 0, value}
#define REAL(scaling, field, value) \
    {scaling, offsetof(posenc_rope_params, field), #field, 1, value}
#define FACTOR(scaling, field) \
    REAL(scaling, field, -1), REAL(scaling, field, (double)NAN), \
        REAL(scaling, field, (double)INFINITY), REAL(scaling, field, 0x1p-65), \
        REAL(scaling, field, 0x1p65)

static const struct wrong wrongs[] = {
    FACTOR(POSENC_SCALING_NTK, factor),
    REAL(POSENC_SCALING_NTK, factor, 0),
    FACTOR(POSENC_SCALING_NTK_SCALED, factor),
    REAL(POSENC_SCALING_NTK_SCALED, factor, 0),
    FACTOR(POSENC_SCALING_NTK_MIXED, factor),
    REAL(POSENC_SCALING_NTK_MIXED, factor, 0),
    FACTOR(POSENC_SCALING_DYNAMIC_NTK, factor),
    REAL(POSENC_SCALING_DYNAMIC_NTK, factor, 0),
    FACTOR(POSENC_SCALING_LONGROPE, factor),
    FACTOR(POSENC_SCALING_PROPORTIONAL, factor),
    REAL(POSENC_SCALING_NTK_MIXED, mixed_exponent, -0.5),
    REAL(POSENC_SCALING_NTK_MIXED, mixed_exponent, 16.5),
    REAL(POSENC_SCALING_NTK_MIXED, mixed_exponent, (double)NAN),
    REAL(POSENC_SCALING_DYNAMIC_NTK, original_max_position, 0.5),
    REAL(POSENC_SCALING_DYNAMIC_NTK, original_max_position, (double)NAN),
    REAL(POSENC_SCALING_LONGROPE, original_max_position, 0),
    REAL(POSENC_SCALING_LONGROPE, original_max_position, 0x1p65),
    REAL(POSENC_SCALING_LONGROPE, original_max_position, 1), /* ln 1 = 0 divides in the rule */
    FACTOR(POSENC_SCALING_LONGROPE, short_attention),
    FACTOR(POSENC_SCALING_LONGROPE, long_attention),
    INT(POSENC_SCALING_PROPORTIONAL, rotating_pairs, -1),
    INT(POSENC_SCALING_PROPORTIONAL, rotating_pairs, PAIRS + 1),
    FACTOR(POSENC_SCALING_YARN, magnitude_slope),
    REAL(POSENC_SCALING_YARN, magnitude_slope, 0),
    INT(POSENC_SCALING_YARN, yarn_blend, -1),
    INT(POSENC_SCALING_YARN, yarn_blend, 2),
    INT(POSENC_SCALING_NONE, axes, -1),
    INT(POSENC_SCALING_NONE, axes, 5),
    INT(POSENC_SCALING_NONE, xpos, -2),
    INT(POSENC_SCALING_NONE, xpos, 2),
    INT(POSENC_SCALING_NONE, reserved2, 1),
};

static void test_fields(void **state)
{
    (void)state;
    for (int32_t scaling = 0; scaling <= POSENC_SCALING_PROPORTIONAL; scaling++) {
        posenc_rope_params params = good(scaling);

        accept(&params);
    }
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const struct wrong *w = &wrongs[i];
        posenc_rope_params params = good(w->scaling);
        int32_t whole = w->is_double ? 0 : (int32_t)w->value;
        char words[128];

        if (w->is_double) memcpy((char *)&params + w->offset, &w->value, sizeof w->value);
        else memcpy((char *)&params + w->offset, &whole, sizeof whole);
        if (!w->is_double) snprintf(words, sizeof words, "%s|%d", w->name, whole);
        else if (fabs(w->value) < 20 && fabs(w->value) >= 0.1)
            snprintf(words, sizeof words, "%s|%g", w->name, w->value);
        else snprintf(words, sizeof words, "%s", w->name);
        refuse(&params, words);
    }
}

/* Fields of another scaling are ignored, pointers included: nothing is read through them. */
static void test_other_scalings_are_ignored(void **state)
{
    posenc_rope_params params = good(POSENC_SCALING_NTK);

    (void)state;
    params.short_factors = params.long_factors = params.factors = (const double *)(uintptr_t)8;
    params.num_factors = -7;
    params.rotating_pairs = -1;
    params.mixed_exponent = -1;
    params.magnitude_slope = -1;
    params.yarn_blend = 9;
    params.length = -1;
    params.short_attention = -1;
    params.xpos_scale_base = -1;
    accept(&params);
}

static void test_lengths(void **state)
{
    (void)state;
    for (int32_t scaling = POSENC_SCALING_DYNAMIC_NTK; scaling <= POSENC_SCALING_LONGROPE;
         scaling++) {
        posenc_rope_params params = good(scaling);

        params.length = -1;
        refuse(&params, "length is -1|>= 0");
        params.length = INT64_MAX;
        accept(&params);
    }
}

static void test_lists(void **state)
{
    static const double bad[] = {0, -1, (double)NAN, (double)INFINITY, 0x1p-65};
    posenc_rope_params params = good(POSENC_SCALING_LONGROPE);

    (void)state;
    params.short_factors = NULL;
    refuse(&params, "short_factors is NULL");
    params = good(POSENC_SCALING_LONGROPE);
    params.long_factors = NULL;
    refuse(&params, "long_factors is NULL");
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        params = good(POSENC_SCALING_LONGROPE);
        list[PAIRS - 1] = bad[b];
        refuse(&params, "short_factors[15]|2^-64..2^1000");
        params = good(POSENC_SCALING_LONGROPE);
        other_list[0] = bad[b];
        refuse(&params, "long_factors[0]|2^-64..2^1000");
        params = good(POSENC_SCALING_LINEAR);
        params.factors = list;
        params.num_factors = 3;
        accept(&params);
        list[2] = bad[b];
        refuse(&params, "factors[2]|2^-64..2^64");
    }
    params = good(POSENC_SCALING_LONGROPE);
    params.original_max_position = 1; /* no rule is asked for */
    params.attention_factor = 1;
    accept(&params);
}

static void test_numbers_of_factors(void **state)
{
    posenc_rope_params params = good(POSENC_SCALING_LINEAR);

    (void)state;
    params.num_factors = 1;
    refuse(&params, "num_factors is 1|factors");
    params.factors = list;
    params.num_factors = 0;
    refuse(&params, "num_factors is 0|factors");
    params.num_factors = -1;
    refuse(&params, "num_factors is -1|factors");
    params.num_factors = 65537;
    refuse(&params, "num_factors is 65537|65536");
    /* The least of them makes the greatest frequency. */
    params.num_factors = 2;
    params.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    params.frequencies = other_list;
    accept(&params);
    list[1] = other_list[3] = 0x1p-60;
    refuse(&params, "frequencies[3]|product|2^-75");
}

static void test_axes(void **state)
{
    int32_t axes[PAIRS] = {0};
    posenc_rope_params params = good(POSENC_SCALING_NONE);

    (void)state;
    params.axis_of_pair = axes;
    accept(&params);
    axes[3] = 1;
    refuse(&params, "axis_of_pair[3] is 1|0..0");
    params.axes = 2;
    accept(&params);
    axes[15] = 2;
    refuse(&params, "axis_of_pair[15] is 2|0..1");
    axes[15] = -1;
    refuse(&params, "axis_of_pair[15] is -1|0..1");
}

static void test_xpos(void **state)
{
    static const double bad[] = {0, -512, (double)NAN, (double)INFINITY};
    posenc_rope_params params = good(POSENC_SCALING_NONE), wrong;

    (void)state;
    params.xpos = POSENC_XPOS_KEYS;
    accept(&params);
    wrong = params, wrong.recipe = POSENC_RECIPE_HF_F32;
    refuse(&wrong, "xpos is -1|recipe");
    wrong = params, wrong.frequency_source = POSENC_FREQUENCIES_PERIODS, wrong.frequencies = list;
    refuse(&wrong, "xpos is -1|frequency_source");
    wrong = params, wrong.axes = 2;
    refuse(&wrong, "xpos is -1|axes");
    wrong = params, wrong.xpos_center = INT64_C(1) << 31;
    refuse(&wrong, "xpos_center is 2147483648|2^31");
    wrong = params, wrong.xpos_center = INT64_MIN;
    refuse(&wrong, "xpos_center");
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        wrong = params, wrong.xpos_scale_base = bad[b];
        refuse(&wrong, "xpos_scale_base|2^-64..2^64");
    }
}

static void test_periods(void **state)
{
    static const double bad[] = {0, -1, (double)NAN, 0x1p-76, -(double)INFINITY, 0x1p1001};
    posenc_rope_params params = good(POSENC_SCALING_NONE);

    (void)state;
    params.frequency_source = POSENC_FREQUENCIES_PERIODS;
    refuse(&params, "frequencies|NULL|_PERIODS");
    params.frequencies = list;
    list[0] = (double)INFINITY;
    accept(&params);
    params.scaling = POSENC_SCALING_LINEAR;
    refuse(&params, "scaling is 1|0..0");
    params.scaling = POSENC_SCALING_NONE;
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        list[7] = bad[b];
        refuse(&params, "frequencies[7]|2^-75..2^1000 or infinite");
    }
}

/* Which scalings a recipe has; a fixed length keeps LongRoPE in all of them. */
static void test_scalings_of_recipes(void **state)
{
    static const char *const has[] = {"0123456789", "0123...789", "0123456789", "01234...89"};

    (void)state;
    for (int32_t recipe = POSENC_RECIPE_EXACT; recipe <= POSENC_RECIPE_GGML; recipe++) {
        for (int32_t scaling = 0; scaling <= POSENC_SCALING_PROPORTIONAL; scaling++) {
            posenc_rope_params params = good(scaling);
            char words[32];

            params.recipe = recipe;
            params.length = 4096;
            params.factor = scaling == POSENC_SCALING_PROPORTIONAL ? 1 : 4;
            snprintf(words, sizeof words, "scaling is %d", scaling);
            if (has[recipe][scaling] != '.') accept(&params);
            else refuse(&params, words);
        }
    }
}

static void test_limits_of_recipes(void **state)
{
    static const struct {
        int32_t scaling;
        const char *words;
        int hf, vllm, ggml;
    } rows[] = {{POSENC_SCALING_YARN, "yarn_blend is 1", 1, 1, 1},
                {POSENC_SCALING_YARN, "magnitude_slope is 0.07|0.1", 1, 0, 1},
                {POSENC_SCALING_LINEAR, "num_factors is 2", 1, 0, 1},
                {POSENC_SCALING_YARN, "truncate is 0", 0, 0, 1},
                {POSENC_SCALING_LONGROPE, "length is 0", 0, 1, 1},
                {POSENC_SCALING_LONGROPE, "layout is 1", 0, 1, 0},
                {POSENC_SCALING_PROPORTIONAL, "factor is 4", 0, 1, 0},
                {POSENC_SCALING_DYNAMIC_NTK, "rotary_dim is 2", 1, 1, 1},
                {POSENC_SCALING_NONE, "frequency_source is 3", 1, 1, 1},
                {POSENC_SCALING_NONE, "frequency_source is 2", 0, 1, 0},
                {POSENC_SCALING_NONE, "frequency_source is 1", 0, 1, 1},
                {POSENC_SCALING_NONE, "row_dtype is 3", 0, 0, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int refused[] = {0, rows[i].hf, rows[i].vllm, rows[i].ggml};
        for (int32_t recipe = POSENC_RECIPE_HF_F32; recipe <= POSENC_RECIPE_GGML; recipe++) {
            posenc_rope_params params = good(rows[i].scaling);

            params.recipe = recipe;
            params.length = i == 4 ? 0 : 4096;
            if (i == 0) params.yarn_blend = POSENC_YARN_GEOMETRIC;
            if (i == 1) params.magnitude_slope = 0.07;
            if (i == 2) params.factors = list, params.num_factors = 2;
            if (i == 3) params.truncate = 0;
            if (i == 5) params.layout = POSENC_ADJACENT;
            if (i == 7) params.rotary_dim = 2;
            if (i >= 8 && i <= 10) {
                params.frequency_source = 11 - (int32_t)i;
                params.frequencies = list;
            }
            if (i == 11) params.row_dtype = POSENC_BF16;
            if (!refused[recipe]) accept(&params);
            else refuse(&params, i == 7 && recipe == POSENC_RECIPE_GGML ? "scaling is 7"
                                                                        : rows[i].words);
        }
    }
}

/* Where float32 (vLLM: double) would leave no base, or infinite powers, there is no such plan. */
static void test_float32_holds_all(void **state)
{
    posenc_rope_params params = good(POSENC_SCALING_DYNAMIC_NTK);

    (void)state;
    for (params.recipe = POSENC_RECIPE_HF_F32; params.recipe <= POSENC_RECIPE_VLLM;
         params.recipe++) {
        int vllm = params.recipe == POSENC_RECIPE_VLLM;

        params.factor = vllm ? 0x1p50 : 0x1p20;
        accept(&params);
        params.factor *= 1 + 0x1p-52;
        refuse(&params, vllm ? "factor is|2^50" : "factor is|2^20");
    }
    params = good(POSENC_SCALING_NTK_MIXED);
    params.recipe = POSENC_RECIPE_VLLM;
    params.head_dim = params.rotary_dim = 512;
    params.mixed_exponent = 15.8; /* 256^15.8 = 2^126.4 */
    accept(&params);
    params.mixed_exponent = 16;
    refuse(&params, "mixed_exponent is 16|2^127");
}

/* Large numbers may each be allowed and make a factor that float32 rows cannot hold. */
static void test_attention_range(void **state)
{
    posenc_rope_params params = good(POSENC_SCALING_YARN);

    (void)state;
    params.magnitude_slope = 0x1p64;
    refuse(&params, "factor is 4|attention factor|2^-64..2^64");
    params.attention_factor = 1;
    accept(&params);
}

/* The struct that ended after sin_rows is known, and its missing fields have their defaults. */
static void test_older_struct(void **state)
{
    posenc_rope_params params = good(POSENC_SCALING_YARN);
    const uint32_t older = (uint32_t)offsetof(posenc_rope_params, length);

    (void)state;
    params.magnitude_slope = -1;
    params.axes = 77;
    params.reserved2 = 1;
    params.struct_size = older;
    posenc_plan *plan = test_plan(&params);
    assert_true(fabs(posenc_plan_attention_factor(plan) - 1.138629436111989) < 1e-15);
    assert_int_equal(posenc_plan_axes(plan), 1);
    posenc_plan_free(plan);
    for (uint32_t size = older - 8; size < (uint32_t)sizeof params; size += 4) {
        if (size == older) continue;
        params.struct_size = size;
        refuse(&params, "struct_size");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_other_scalings_are_ignored),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_numbers_of_factors),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_xpos),
        cmocka_unit_test(test_periods),
        cmocka_unit_test(test_scalings_of_recipes),
        cmocka_unit_test(test_limits_of_recipes),
        cmocka_unit_test(test_float32_holds_all),
        cmocka_unit_test(test_attention_range),
        cmocka_unit_test(test_older_struct),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
