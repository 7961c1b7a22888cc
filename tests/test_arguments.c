/* SPDX-License-Identifier: MIT */
/* Bad parameters of plans: each one wrong in each way, refused by name and value, no plan made. */
#include "support/test.h"

#include <math.h>
#include <stdio.h>

/* Parameters that are right, with every scaling's keys filled in. */
static posenc_rope_params good(int32_t scaling)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 64, 32);

    params.scaling = scaling;
    params.factor = 4;
    params.original_max_position = 4096;
    params.low_freq_factor = 1;
    params.high_freq_factor = 4;
    return params;
}

/* The plan must be refused, with and without a posenc_error, and *plan stays as it was. */
static void refuse(const posenc_rope_params *params, int32_t expected, const char *words)
{
    posenc_plan *const untouched = (posenc_plan *)(uintptr_t)0x1234;
    posenc_plan *plan = untouched;
    posenc_error error = {0, ""};

    test_refused(posenc_plan_create(&plan, params, &error), expected, &error, words);
    assert_ptr_equal(plan, untouched);
    assert_int_equal(posenc_plan_create(&plan, params, NULL), expected);
    assert_ptr_equal(plan, untouched);
}

static void accept(const posenc_rope_params *params)
{
    posenc_plan_free(test_plan(params));
}

/* A field of int32_t or double, named, with a value that breaks its rule. */
struct wrong { int32_t scaling; const char *name; size_t offset; int is_double; double value; };

#define INT(scaling, field, value) {scaling, #field, offsetof(posenc_rope_params, field), 0, value}
#define REAL(scaling, field, value) {scaling, #field, offsetof(posenc_rope_params, field), 1, value}
#define NOT_POSITIVE(scaling, field)                                                              \
    REAL(scaling, field, 0), REAL(scaling, field, -1), REAL(scaling, field, (double)NAN),         \
        REAL(scaling, field, (double)INFINITY), REAL(scaling, field, -(double)INFINITY)

static const struct wrong wrongs[] = {
    INT(0, layout, 0),
    INT(0, layout, 3),
    INT(0, layout, -1),
    INT(0, layout, INT32_MAX),
    INT(0, head_dim, 0),
    INT(0, head_dim, -64),
    INT(0, head_dim, 1),
    INT(0, head_dim, 65537),
    INT(0, head_dim, INT32_MAX),
    INT(0, head_dim, INT32_MIN),
    INT(0, rotary_dim, 0),
    INT(0, rotary_dim, -2),
    INT(0, rotary_dim, 31),
    INT(0, rotary_dim, 66),
    INT(0, rotary_dim, INT32_MAX),
    INT(0, rotary_dim, INT32_MIN),
    INT(0, rotary_offset, -1),
    INT(0, rotary_offset, 33),
    INT(0, rotary_offset, INT32_MAX),
    INT(0, rotary_offset, INT32_MIN),
    INT(0, scaling, -1),
    INT(0, scaling, 10),
    INT(0, scaling, INT32_MAX),
    REAL(0, base, 1),
    REAL(0, base, 0.5),
    REAL(0, base, 0),
    REAL(0, base, -10000),
    REAL(0, base, (double)NAN),
    REAL(0, base, (double)INFINITY),
    REAL(0, base, -(double)INFINITY),
    REAL(0, base, 0x1p76),
    REAL(0, base, 1e300),
    REAL(0, attention_factor, -1),
    REAL(0, attention_factor, (double)NAN),
    REAL(0, attention_factor, (double)INFINITY),
    REAL(0, attention_factor, 1e300),
    INT(0, recipe, -1),
    INT(0, recipe, 4),
    INT(0, recipe, 99),
    INT(0, row_dtype, -1),
    INT(0, row_dtype, 4),
    INT(0, row_dtype, POSENC_F16),
    INT(0, isa, -1),
    INT(0, isa, 5),
    INT(0, isa, INT32_MAX),
    INT(0, frequency_source, -1),
    INT(0, frequency_source, 4),
    INT(0, reserved, 1),
    INT(0, reserved2, -1),
    NOT_POSITIVE(POSENC_SCALING_LINEAR, factor),
    NOT_POSITIVE(POSENC_SCALING_LLAMA3, factor),
    NOT_POSITIVE(POSENC_SCALING_YARN, factor),
    NOT_POSITIVE(POSENC_SCALING_LLAMA3, original_max_position),
    REAL(POSENC_SCALING_LLAMA3, original_max_position, 0.5),
    NOT_POSITIVE(POSENC_SCALING_YARN, original_max_position),
    NOT_POSITIVE(POSENC_SCALING_LLAMA3, low_freq_factor),
    NOT_POSITIVE(POSENC_SCALING_LLAMA3, high_freq_factor),
    REAL(POSENC_SCALING_LLAMA3, low_freq_factor, 4),
    REAL(POSENC_SCALING_LLAMA3, low_freq_factor, 5),
    NOT_POSITIVE(POSENC_SCALING_YARN, beta_fast),
    NOT_POSITIVE(POSENC_SCALING_YARN, beta_slow),
    REAL(POSENC_SCALING_YARN, beta_slow, 33),
    REAL(POSENC_SCALING_YARN, mscale, -1),
    REAL(POSENC_SCALING_YARN, mscale, (double)NAN),
    REAL(POSENC_SCALING_YARN, mscale, (double)INFINITY),
    REAL(POSENC_SCALING_YARN, mscale_all_dim, -1),
    REAL(POSENC_SCALING_YARN, mscale_all_dim, (double)NAN),
    REAL(POSENC_SCALING_YARN, mscale_all_dim, (double)INFINITY),
    INT(POSENC_SCALING_YARN, truncate, 2),
    INT(POSENC_SCALING_YARN, truncate, -1),
};

static void test_fields(void **state)
{
    (void)state;
    for (int32_t scaling = 0; scaling <= POSENC_SCALING_YARN; scaling++) {
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
        /* The name and, where it prints alike everywhere, the value. */
        if (!w->is_double) snprintf(words, sizeof words, "%s|%d", w->name, whole);
        else if (fabs(w->value) < 1e6) snprintf(words, sizeof words, "%s|%g", w->name, w->value);
        else snprintf(words, sizeof words, "%s", w->name);
        refuse(&params, POSENC_ERROR_ARGUMENT, words);
    }
}

/* A value may be finite and positive and still too small or large: the text says what the limits
 * are. */
static void test_texts_name_the_limits(void **state)
{
    posenc_rope_params params = good(POSENC_SCALING_LINEAR);
    double frequencies[16];

    (void)state;
    params.factor = 0x1p-65;
    refuse(&params, POSENC_ERROR_ARGUMENT, "factor|2.7|2^-64..2^64");
    params.factor = 0x1p65;
    refuse(&params, POSENC_ERROR_ARGUMENT, "factor|3.6|2^-64..2^64");
    params = good(POSENC_SCALING_YARN);
    params.original_max_position = 0x1p65;
    refuse(&params, POSENC_ERROR_ARGUMENT, "original_max_position|3.6|1..2^64");
    params = good(POSENC_SCALING_NONE);
    params.attention_factor = 0x1p-65;
    refuse(&params, POSENC_ERROR_ARGUMENT, "attention_factor|2.7|2^-64..2^64");
    params = good(POSENC_SCALING_NONE);
    params.frequency_source = POSENC_FREQUENCIES_INVERSE;
    params.frequencies = frequencies;
    for (int i = 0; i < 16; i++) frequencies[i] = 1;
    frequencies[3] = 0x1p76;
    refuse(&params, POSENC_ERROR_ARGUMENT, "frequencies[3]|7.5|2^76");
}

static void test_pointers(void **state)
{
    posenc_rope_params params = good(0);
    posenc_plan *plan = NULL;
    posenc_error error = {0, ""};

    (void)state;
    test_refused(posenc_plan_create(NULL, &params, &error), POSENC_ERROR_ARGUMENT, &error,
                 "plan|NULL");
    refuse(NULL, POSENC_ERROR_ARGUMENT, "params|NULL");
    test_refused(posenc_plan_create_simple(NULL, 1, 8, 10000, &error), POSENC_ERROR_ARGUMENT,
                 &error, "plan|NULL");
    test_refused(posenc_plan_create_simple(&plan, 0, 8, 10000, &error), POSENC_ERROR_ARGUMENT,
                 &error, "layout|0");
    test_refused(posenc_plan_create_simple(&plan, 1, 7, 10000, &error), POSENC_ERROR_ARGUMENT,
                 &error, "head_dim is 7");
    test_refused(posenc_plan_create_simple(&plan, 1, 8, 1, &error), POSENC_ERROR_ARGUMENT, &error,
                 "base|1");
    assert_null(plan);
    posenc_plan_free(NULL);
    assert_int_equal(posenc_plan_pairs(NULL), 0);
    assert_int_equal(posenc_plan_isa(NULL), 0);
    assert_true(posenc_plan_attention_factor(NULL) == 0);
    params.max_position = -1;
    refuse(&params, POSENC_ERROR_ARGUMENT, "max_position|-1");
}

/* B46-a: the size field. */
static void test_struct_size(void **state)
{
    struct { posenc_rope_params params; unsigned char tail[64]; } larger = {good(0), {0}};

    (void)state;
    larger.params.struct_size = 0;
    refuse(&larger.params, POSENC_ERROR_ARGUMENT, "struct_size|0");
    larger.params.struct_size = 8;
    refuse(&larger.params, POSENC_ERROR_ARGUMENT, "struct_size|8");
    larger.params.struct_size = sizeof larger.params - 8;
    refuse(&larger.params, POSENC_ERROR_ARGUMENT, "struct_size");
    larger.params.struct_size = sizeof larger.params + 8;
    accept(&larger.params);
    larger.params.struct_size = sizeof larger;
    accept(&larger.params);
    larger.tail[63] = 1;
    refuse(&larger.params, POSENC_ERROR_ARGUMENT, "struct_size");
    larger.tail[63] = 0;
    larger.tail[0] = 1;
    refuse(&larger.params, POSENC_ERROR_ARGUMENT, "struct_size");
    larger.params.struct_size = sizeof larger.params; /* the tail is no longer ours to read */
    accept(&larger.params);
    larger.params.struct_size = UINT32_MAX;
    refuse(&larger.params, POSENC_ERROR_ARGUMENT, "struct_size");
}

static void test_defaults(void **state)
{
    posenc_rope_params params;

    (void)state;
    memset(&params, 0xff, sizeof params);
    posenc_rope_params_init(&params);
    assert_int_equal(params.struct_size, sizeof params);
    assert_int_equal(params.layout, 0);
    assert_true(params.base == 10000 && params.beta_fast == 32 && params.beta_slow == 1);
    assert_int_equal(params.truncate, 1);
    assert_null(params.frequencies);
    assert_null(params.cos_table);
    refuse(&params, POSENC_ERROR_ARGUMENT, "layout"); /* no default, so nothing is guessed */
}

/* An ISA that exists, but not here, is another error than a number that never was one. */
static void test_absent_isa(void **state)
{
    int absent = 0;

    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++) {
        posenc_rope_params params = good(0);

        params.isa = isa;
        if (posenc_isa_available(isa)) {
            accept(&params);
        } else {
            refuse(&params, POSENC_ERROR_UNSUPPORTED, posenc_isa_name(isa));
            absent++;
        }
    }
    assert_true(absent > 0);
}

static void test_frequencies(void **state)
{
    static const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0x1p80};
    double frequencies[16];
    posenc_rope_params params = good(0);

    (void)state;
    for (int i = 0; i < 16; i++) frequencies[i] = 1.0 / (i + 1);
    params.frequency_source = POSENC_FREQUENCIES_INVERSE;
    refuse(&params, POSENC_ERROR_ARGUMENT, "frequencies|NULL");
    params.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    refuse(&params, POSENC_ERROR_ARGUMENT, "frequencies|NULL");
    params.frequency_source = POSENC_FREQUENCIES_FORMULA;
    params.frequencies = frequencies;
    refuse(&params, POSENC_ERROR_ARGUMENT, "frequencies");
    for (int32_t source = POSENC_FREQUENCIES_INVERSE; source <= POSENC_FREQUENCIES_DIVISORS;
         source++) {
        params.frequency_source = source;
        accept(&params);
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            /* A divisor may be huge: its frequency is then nearly 0. */
            if (b == 3 && source == POSENC_FREQUENCIES_DIVISORS) continue;
            frequencies[15] = bad[b];
            refuse(&params, POSENC_ERROR_ARGUMENT, "frequencies|15");
        }
        frequencies[15] = source == POSENC_FREQUENCIES_DIVISORS ? 0 : -1;
        refuse(&params, POSENC_ERROR_ARGUMENT, "frequencies|15");
        frequencies[15] = 0.5;
        for (int32_t scaling = POSENC_SCALING_LINEAR; scaling <= POSENC_SCALING_YARN; scaling++) {
            posenc_rope_params scaled = good(scaling);

            scaled.frequency_source = source;
            scaled.frequencies = frequencies;
            if (source == POSENC_FREQUENCIES_DIVISORS && scaling == POSENC_SCALING_LINEAR) {
                accept(&scaled);
            } else {
                refuse(&scaled, POSENC_ERROR_ARGUMENT, "scaling");
            }
        }
    }
    /* Each number is within its own range, the frequency they make is not. */
    params = good(POSENC_SCALING_LINEAR);
    params.factor = 0x1p-60;
    params.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    params.frequencies = frequencies;
    frequencies[0] = 0x1p-60;
    refuse(&params, POSENC_ERROR_ARGUMENT, "frequenc");
}

static void test_tables(void **state)
{
    static float table[8 * 16 + 1];
    posenc_rope_params params = good(0), wrong;

    (void)state;
    params.cos_table = params.sin_table = table;
    params.cos_rows = params.sin_rows = 8;
    accept(&params);
    wrong = params, wrong.sin_table = NULL;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "sin_table|NULL");
    wrong = params, wrong.cos_table = NULL;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "cos_table|NULL");
    wrong = params, wrong.sin_rows = 7;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "cos_rows|8|sin_rows|7");
    wrong = params, wrong.cos_rows = 7;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "cos_rows|7|sin_rows|8");
    wrong = params, wrong.cos_rows = wrong.sin_rows = 0;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "cos_rows|0");
    wrong = params, wrong.cos_rows = wrong.sin_rows = -1;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "cos_rows|-1");
    wrong = params, wrong.cos_rows = wrong.sin_rows = INT64_MAX;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "cos_rows");
    wrong = params, wrong.cos_table = (const float *)(const void *)((const char *)table + 2);
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "cos_table");
    wrong = params, wrong.recipe = POSENC_RECIPE_HF_F32;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "recipe");
    wrong = params, wrong.scaling = POSENC_SCALING_LINEAR, wrong.factor = 2;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "scaling");
    wrong = good(0), wrong.cos_rows = 8;
    refuse(&wrong, POSENC_ERROR_ARGUMENT, "cos_rows|8");
}

static void test_inv_freq(void **state)
{
    static float table[16];
    double out[32], before[32];
    posenc_rope_params params = good(0);
    posenc_plan *plan = test_plan(&params);
    posenc_error error = {0, ""};

    (void)state;
    for (int i = 0; i < 32; i++) out[i] = before[i] = 7;
    test_refused(posenc_plan_inv_freq(NULL, out, 16, &error), POSENC_ERROR_ARGUMENT, &error,
                 "plan|NULL");
    test_refused(posenc_plan_inv_freq(plan, NULL, 16, &error), POSENC_ERROR_ARGUMENT, &error,
                 "inv_freq|NULL");
    test_refused(posenc_plan_inv_freq(plan, out, 15, &error), POSENC_ERROR_ARGUMENT, &error,
                 "count|15");
    test_refused(posenc_plan_inv_freq(plan, out, 32, &error), POSENC_ERROR_ARGUMENT, &error,
                 "count|32");
    test_refused(posenc_plan_inv_freq(plan, out, 0, &error), POSENC_ERROR_ARGUMENT, &error,
                 "count|0");
    assert_int_equal(posenc_plan_inv_freq(plan, out, SIZE_MAX, NULL), POSENC_ERROR_ARGUMENT);
    assert_memory_equal(out, before, sizeof out);
    posenc_plan_free(plan);
    params.cos_table = params.sin_table = table;
    params.cos_rows = params.sin_rows = 1;
    plan = test_plan(&params);
    test_refused(posenc_plan_inv_freq(plan, out, 16, &error), POSENC_ERROR_UNSUPPORTED, &error,
                 "table");
    assert_memory_equal(out, before, sizeof out);
    posenc_plan_free(plan);
}

/* Extremes that are right. */
static void test_limits(void **state)
{
    double frequencies[16];
    posenc_rope_params params = test_params(POSENC_ADJACENT, 65536, 65536);

    (void)state;
    accept(&params);
    params = test_params(POSENC_ADJACENT, 3, 2);
    params.rotary_offset = 1;
    params.base = 1 + 0x1p-52;
    accept(&params);
    params.base = 0x1.fffffffffffffp75;
    params.max_position = INT64_MAX;
    accept(&params);
    for (int i = 0; i < 16; i++) frequencies[i] = 0x1.fffffffffffffp75;
    params = good(0);
    params.frequency_source = POSENC_FREQUENCIES_INVERSE;
    params.frequencies = frequencies;
    accept(&params);
    frequencies[15] = 0x1p76;
    refuse(&params, POSENC_ERROR_ARGUMENT, "frequencies|15|2^76");
    params = good(POSENC_SCALING_LINEAR);
    params.factor = 0x1p-64;
    accept(&params);
    params.factor = 0x1p-65;
    refuse(&params, POSENC_ERROR_ARGUMENT, "factor|2^-64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_texts_name_the_limits),
        cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_struct_size),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_absent_isa),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_inv_freq),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
