/* SPDX-License-Identifier: MIT */
/* The recipes ggml and vllm: their definitions bit for bit, and what a real ggml computed. */
#include "support/half.h"
#include "support/numbers.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>

enum { MOST = 128 };

static void rows_at(const posenc_plan *plan, const int64_t *ids, int32_t axes, float *row)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows;

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I64;
    positions.ids = ids;
    positions.axes = axes;
    positions.axis_stride = 1;
    posenc_tensor_contiguous(&rows, row, POSENC_F32, 1, 1, 1, 2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
}

/* The row of one position in a file, cosines then sines. Returns 0 where it has none. */
static int stored_row(const char *file, const char *id, const char *key, double *row)
{
    char name[40];
    size_t n;

    snprintf(name, sizeof name, "cos.%s", key);
    n = test_numbers(file, id, name, row, MOST);
    snprintf(name, sizeof name, "sin.%s", key);
    assert_int_equal(test_numbers(file, id, name, row + n, MOST), n);
    return (int)n;
}

/* Parameters of a line "plan" of rows_ggml.txt. */
static posenc_rope_params ggml_params(const char *id, double *divisors)
{
    double n[6];
    posenc_rope_params params;

    assert_int_equal(test_numbers("rows_ggml.txt", id, "plan", n, 6), 6);
    params = test_params(POSENC_ADJACENT, (int32_t)n[0], (int32_t)n[0]);
    params.recipe = POSENC_RECIPE_GGML;
    params.base = n[1];
    params.scaling = (int32_t)n[2];
    params.factor = n[3];
    params.original_max_position = n[4];
    if (!strcmp(id, "divisors")) {
        test_numbers("rows_ggml.txt", id, "divisors", divisors, MOST);
        params.frequency_source = POSENC_FREQUENCIES_DIVISORS;
        params.frequencies = divisors;
    }
    return params;
}

static const int64_t positions[] = {0, 1, -3, 100, 4095, 131071, 1048575};

/*
 * A built ggml has the last bits of its libm and compiler: one step of a float for the cosine, and
 * for YaRN, whose blend some compilers contract, one step of the angle.
 */
static double real_tolerance(const posenc_rope_params *params, double factor, double angle)
{
    double libm = factor * 1.01 * 0x1p-24;

    return params->scaling == POSENC_SCALING_YARN ? libm + factor * angle * 1.01 * 0x1p-23 : libm;
}

static void check_ggml_row(const posenc_plan *plan, const posenc_rope_params *params,
                           const char *id, int64_t position)
{
    double expected[2 * MOST], run[2 * MOST], frequencies[MOST];
    float row[2 * MOST];
    char key[32];
    int pairs;

    snprintf(key, sizeof key, "%lld", (long long)position);
    pairs = stored_row("rows_ggml.txt", id, key, expected);
    assert_int_equal(pairs, posenc_plan_pairs(plan));
    assert_int_equal(stored_row("rows_ggml_run.txt", id, key, run), pairs);
    rows_at(plan, &position, 0, row);
    test_ok(posenc_plan_inv_freq(plan, frequencies, (size_t)pairs, NULL), NULL);
    for (int i = 0; i < 2 * pairs; i++) {
        double angle = fabs((double)position) * frequencies[i % pairs];
        double tolerance = real_tolerance(params, posenc_plan_attention_factor(plan), angle);

        if ((double)row[i] != (double)(float)expected[i]) {
            fail_msg("%s at %s, value %d: %a instead of %a", id, key, i, (double)row[i],
                     expected[i]);
        }
        if (!(fabs((double)row[i] - run[i]) <= tolerance)) {
            fail_msg("%s at %s, value %d: %a, a real ggml has %a", id, key, i, (double)row[i],
                     run[i]);
        }
    }
}

static void test_ggml(void **state)
{
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas), plans = 0;
    double divisors[MOST];
    char id[32];

    (void)state;
    for (; test_number_id("rows_ggml.txt", "plan", plans, id, sizeof id); plans++)
        for (size_t k = 0; k < n; k++) {
            posenc_rope_params params = ggml_params(id, divisors);
            posenc_plan *plan;

            params.isa = isas[k];
            plan = test_plan(&params);
            for (int p = 0; p < 7; p++) check_ggml_row(plan, &params, id, positions[p]);
            posenc_plan_free(plan);
        }
    assert_int_equal(plans, 8);
}

/* Sections of four axes: each axis has its recurrence over all pairs. */
static void test_ggml_axes(void **state)
{
    static const int sections[4] = {16, 20, 20, 8};
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 128, 128);
    int32_t axis_of_pair[64];
    posenc_plan *plan;
    int pair = 0;

    (void)state;
    for (int a = 0; a < 4; a++)
        for (int i = 0; i < sections[a]; i++) axis_of_pair[pair++] = a;
    params.recipe = POSENC_RECIPE_GGML;
    params.base = 1e6;
    params.axes = 4;
    params.axis_of_pair = axis_of_pair;
    plan = test_plan(&params);
    for (int n = 0; n < 3; n++) {
        double run[2 * MOST], numbers[4];
        int64_t ids[4];
        float row[MOST];
        char key[32];

        snprintf(key, sizeof key, "position.%d", n);
        test_numbers("rows_ggml_run.txt", "axes", key, numbers, 4);
        for (int a = 0; a < 4; a++) ids[a] = (int64_t)numbers[a];
        snprintf(key, sizeof key, "%d", n);
        assert_int_equal(stored_row("rows_ggml_run.txt", "axes", key, run), 64);
        rows_at(plan, ids, 4, row);
        for (int i = 0; i < 128; i++) assert_true(fabs((double)row[i] - run[i]) <= 1.01 * 0x1p-24);
    }
    posenc_plan_free(plan);
}

/* What two plans make at some positions is the same. */
static void check_equal(const posenc_rope_params *a, const posenc_rope_params *b)
{
    posenc_plan *first = test_plan(a), *second = test_plan(b);

    for (int p = 0; p < 7; p++) {
        float one[MOST], other[MOST];

        rows_at(first, &positions[p], 0, one);
        rows_at(second, &positions[p], 0, other);
        assert_memory_equal(one, other, (size_t)a->rotary_dim * sizeof(float));
    }
    posenc_plan_free(first);
    posenc_plan_free(second);
}

/* Scalings that reach ggml as divisors of the angles, or in the base. */
static void test_ggml_scalings(void **state)
{
    enum { R = 64, PAIRS = R / 2 };
    posenc_rope_params plain = test_params(POSENC_SPLIT_HALF, R, R), scaled;
    double divisors[PAIRS], longer[PAIRS];

    (void)state;
    plain.recipe = POSENC_RECIPE_GGML;
    scaled = plain;
    scaled.scaling = POSENC_SCALING_LLAMA3;
    scaled.factor = 8;
    scaled.original_max_position = 8192;
    scaled.low_freq_factor = 1;
    scaled.high_freq_factor = 4;
    for (int i = 0; i < PAIRS; i++) {
        double w = pow(10000, -2.0 * i / R), turns = 8192 * w / 6.283185307179586;
        double t = (turns - 1) / 3;

        divisors[i] = turns < 1 ? 8 : turns > 4 ? 1 : (double)(float)(1 / ((1 - t) / 8 + t));
    }
    plain.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    plain.frequencies = divisors;
    check_equal(&plain, &scaled);

    scaled.scaling = POSENC_SCALING_LONGROPE;
    scaled.original_max_position = 4096;
    for (int i = 0; i < PAIRS; i++) divisors[i] = 1 + 0.01 * i, longer[i] = 1.1 + i;
    scaled.short_factors = divisors;
    scaled.long_factors = longer;
    scaled.attention_factor = plain.attention_factor = 1.19;
    scaled.length = 4096;
    check_equal(&plain, &scaled);
    scaled.length = 4097;
    plain.frequencies = longer;
    check_equal(&plain, &scaled);

    scaled = plain;
    scaled.frequency_source = POSENC_FREQUENCIES_FORMULA;
    scaled.frequencies = NULL;
    scaled.scaling = POSENC_SCALING_PROPORTIONAL;
    scaled.rotating_pairs = 8;
    for (int i = 0; i < PAIRS; i++) divisors[i] = i < 8 ? 1 : 1e30;
    plain.frequencies = divisors;
    check_equal(&plain, &scaled);

    plain.frequency_source = POSENC_FREQUENCIES_FORMULA;
    plain.frequencies = NULL;
    scaled.scaling = POSENC_SCALING_NTK;
    scaled.factor = 1000;
    plain.base = (double)(10000.0f * (float)pow(1000, (double)((float)R / (float)(R - 2))));
    check_equal(&plain, &scaled);
}

static void check_vllm(const char *id, int32_t isa)
{
    double n[2], factors[4], expected[2 * MOST];
    static const char *const keys[] = {"0", "1", "100", "4095", "131071"};
    posenc_rope_params params;
    posenc_plan *plan;
    int several = !strcmp(id, "several"), sets = several ? 3 : 1;

    assert_int_equal(test_numbers("rows_vllm.txt", id, "plan", n, 2), 2);
    params = test_params(POSENC_SPLIT_HALF, (int32_t)n[0], (int32_t)n[0]);
    params.recipe = POSENC_RECIPE_VLLM;
    params.base = n[1];
    params.isa = isa;
    if (strcmp(id, "plain") != 0) {
        test_numbers("rows_vllm.txt", id, "factors", factors, 4);
        params.scaling = POSENC_SCALING_LINEAR;
        params.factor = factors[0];
        params.factors = several ? factors : NULL;
        params.num_factors = several ? 3 : 0;
    }
    plan = test_plan(&params);
    for (int32_t set = 0; set < sets; set++)
        for (int p = 0; p < 5; p++) {
            posenc_positions at;
            posenc_error error = {0, ""};
            posenc_tensor rows;
            float row[2 * MOST];
            char key[32];

            posenc_positions_start(&at, strtol(keys[p], NULL, 10));
            at.sets = several ? &set : NULL;
            posenc_tensor_contiguous(&rows, row, POSENC_F32, 1, 1, 1, params.rotary_dim);
            test_ok(posenc_rows(plan, &at, &rows, &error), &error);
            snprintf(key, sizeof key, "%d.%s", set, keys[p]);
            stored_row("rows_vllm.txt", id, key, expected);
            for (int i = 0; i < params.rotary_dim; i++) {
                if ((double)row[i] != (double)(float)expected[i]) {
                    fail_msg("%s at %s, value %d: %a instead of %a", id, key, i, (double)row[i],
                             expected[i]);
                }
            }
        }
    posenc_plan_free(plan);
}

static void test_vllm(void **state)
{
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (size_t k = 0; k < n; k++) {
        check_vllm("plain", isas[k]);
        check_vllm("linear", isas[k]);
        check_vllm("several", isas[k]);
    }
}

/* vLLM's table has the type of the model: one more rounding. */
static void test_vllm_dtype(void **state)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 64, 64);
    float plain[64], cast[64];

    (void)state;
    params.recipe = POSENC_RECIPE_VLLM;
    for (int p = 1; p < 7; p++) {
        posenc_plan *plan = test_plan(&params);

        if (positions[p] < 0) {
            posenc_plan_free(plan);
            continue;
        }
        rows_at(plan, &positions[p], 0, plain);
        posenc_plan_free(plan);
        for (int32_t dtype = POSENC_F16; dtype <= POSENC_BF16; dtype++) {
            params.row_dtype = dtype;
            plan = test_plan(&params);
            rows_at(plan, &positions[p], 0, cast);
            posenc_plan_free(plan);
            for (int i = 0; i < 64; i++) {
                uint16_t bits = test_narrow((double)plain[i], dtype);

                assert_true(cast[i] == (float)test_widen(bits, dtype));
            }
        }
        params.row_dtype = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ggml),          cmocka_unit_test(test_ggml_axes),
        cmocka_unit_test(test_ggml_scalings), cmocka_unit_test(test_vllm),
        cmocka_unit_test(test_vllm_dtype),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
