/* SPDX-License-Identifier: MIT */
/* What plans of the later schemes tell: frequencies by length and set, ranges, factors, cases. */
#include "support/cases.h"
#include "support/test.h"

#include <stdio.h>

enum { PAIRS = 64 };

static double short_list[PAIRS], long_list[PAIRS];

/* Parameters of a scaling that everything below starts from. */
static posenc_rope_params scheme(int32_t scaling, int32_t width)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, width, width);

    for (int i = 0; i < PAIRS; i++) {
        short_list[i] = 1 + i;
        long_list[i] = 2 + 3 * i;
    }
    params.scaling = scaling;
    params.factor = 4;
    params.original_max_position = 2048;
    params.low_freq_factor = 1;
    params.high_freq_factor = 4;
    params.short_factors = short_list;
    params.long_factors = long_list;
    params.mixed_exponent = 0.65;
    params.rotating_pairs = 3 < width / 2 ? 3 : width / 2;
    return params;
}

/* The frequencies of a length and a set; returns the attention factor. */
static double at(const posenc_plan *plan, int64_t length, int32_t set, double *inv_freq)
{
    posenc_error error = {0, ""};
    double attention = 0;
    size_t pairs = (size_t)posenc_plan_pairs(plan);

    test_ok(posenc_plan_inv_freq_at(plan, length, set, inv_freq, pairs, &attention, &error),
            &error);
    return attention;
}

static void check_range(const posenc_plan *plan, int64_t length, int64_t first, int64_t next)
{
    posenc_error error = {0, ""};
    int64_t got_first = 0, got_next = 0;

    test_ok(posenc_plan_length_range(plan, length, &got_first, &got_next, &error), &error);
    assert_int_equal(got_first, first);
    assert_int_equal(got_next, next);
}

/* B23-a: a result depends on the length alone, never on the lengths before it. */
static void test_lengths_in_any_order(void **state)
{
    posenc_rope_params params = scheme(POSENC_SCALING_DYNAMIC_NTK, 8);
    double lengths[5], expected[4], got[4], fixed[4];
    char name[32];

    (void)state;
    params.factor = case_number("B23-a", "parameters.factor");
    params.original_max_position = case_number("B23-a", "parameters.max_position");
    posenc_plan *plan = test_plan(&params);
    assert_int_equal(test_numbers("cases.txt", "B23-a", "input.sequence_lengths_in_order", lengths,
                                  5), 5);
    for (int n = 0; n < 5; n++) {
        snprintf(name, sizeof name, "expected.%d.inv_freq", n);
        assert_int_equal(test_numbers("cases.txt", "B23-a", name, expected, 4), 4);
        assert_true(at(plan, (int64_t)lengths[n], 0, got) == 1);
        for (int i = 0; i < 4; i++)
            assert_true(fabs(got[i] - expected[i]) <= 1e-15 * expected[i]);
        params.length = (int64_t)lengths[n];
        posenc_plan *alone = test_plan(&params);
        at(alone, 0, 0, fixed);
        assert_memory_equal(fixed, got, sizeof got);
        check_range(alone, 1, 1, INT64_MAX);
        posenc_plan_free(alone);
    }
    posenc_plan_free(plan);
}

/* B23-b: r/(r - 2) has no value at width 2, the frequencies have. */
static void test_width_2(void **state)
{
    static const int64_t lengths[] = {1, 16, 2048, 2049, 1 << 30, INT64_MAX};

    (void)state;
    for (int32_t scaling = 0; scaling <= POSENC_SCALING_PROPORTIONAL; scaling++) {
        posenc_rope_params params = scheme(scaling, 2);
        posenc_plan *plan = test_plan(&params);
        int divides = scaling == POSENC_SCALING_LINEAR || scaling == POSENC_SCALING_NTK_SCALED ||
                      scaling == POSENC_SCALING_NTK_MIXED ||
                      scaling == POSENC_SCALING_PROPORTIONAL;
        for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
            double got;
            at(plan, lengths[n], 0, &got);
            if (scaling == POSENC_SCALING_LONGROPE)
                assert_true(got == (lengths[n] > 2048 ? 0.5 : 1));
            else
                assert_true(got == (divides ? 0.25 : 1));
        }
        posenc_plan_free(plan);
    }
}

/* B24-b: a length within the trained one leaves positions alone. */
static void test_within_the_trained_length(void **state)
{
    posenc_rope_params params = scheme(POSENC_SCALING_DYNAMIC_NTK, 8);
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor x;
    float head[8];

    (void)state;
    params.factor = case_number("B24-b", "parameters.factor");
    params.original_max_position = case_number("B24-b", "parameters.max_position");
    posenc_plan *plan = test_plan(&params);
    case_floats("B24-b", "input.x", head, 8);
    posenc_positions_start(&positions, (int64_t)case_number("B24-b", "input.position"));
    positions.length = (int64_t)case_number("B24-b", "input.sequence_length");
    posenc_tensor_contiguous(&x, head, POSENC_F32, 1, 1, 1, 8);
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &x, NULL, NULL, NULL, &error), &error);
    case_check("B24-b", "expected", head, 2e-6);
    posenc_plan_free(plan);
}

/* B27-a: strictly beyond the original length, whatever was allocated; B27-a's own L0 is 8. */
static void test_longrope_sets(void **state)
{
    posenc_rope_params params = scheme(POSENC_SCALING_LONGROPE, 8);
    double lengths[4], shorts[4], longs[4], expected[4], got[4];
    char name[32];

    (void)state;
    test_numbers("cases.txt", "B27-a", "parameters.short", shorts, 4);
    test_numbers("cases.txt", "B27-a", "parameters.long", longs, 4);
    params.short_factors = shorts;
    params.long_factors = longs;
    params.original_max_position = case_number("B27-a", "parameters.original_max_position");
    params.factor = case_number("B27-a", "parameters.max_position") / params.original_max_position;
    posenc_plan *plan = test_plan(&params);
    shorts[0] = longs[0] = 99; /* the plan has copies */
    assert_int_equal(test_numbers("cases.txt", "B27-a", "input.sequence_lengths", lengths, 4), 4);
    for (int n = 0; n < 4; n++) {
        snprintf(name, sizeof name, "expected.%d.inv_freq", n);
        test_numbers("cases.txt", "B27-a", name, expected, 4);
        double attention = at(plan, (int64_t)lengths[n], 0, got);
        for (int i = 0; i < 4; i++)
            assert_true(fabs(got[i] - expected[i]) <= 1e-15 * expected[i]);
        snprintf(name, sizeof name, "expected.%d.magnitude", n);
        assert_true(fabs(attention - case_number("B27-a", name)) <= 1e-15);
    }
    check_range(plan, 1, 1, 9);
    check_range(plan, 8, 1, 9);
    check_range(plan, 9, 9, INT64_MAX);
    check_range(plan, INT64_MAX, 9, INT64_MAX);
    posenc_plan_free(plan);
}

/* B27-c: a key that was rotated by the other set is noticed by the range and must be redone. */
static void test_stale_keys(void **state)
{
    posenc_rope_params params = scheme(POSENC_SCALING_LONGROPE, 8);
    posenc_error error = {0, ""};
    double shorts[4], longs[4], scores[2];
    int64_t first, next;

    (void)state;
    test_numbers("cases.txt", "B27-c", "parameters.short", shorts, 4);
    test_numbers("cases.txt", "B27-c", "parameters.long", longs, 4);
    params.short_factors = shorts;
    params.long_factors = longs;
    params.original_max_position = 8; /* and 32 at the most: the factor stays 4 */
    posenc_plan *plan = test_plan(&params);
    for (int stale = 0; stale < 2; stale++) {
        float q[8], k[8];
        posenc_positions positions;
        posenc_tensor x;

        case_floats("B27-c", "input.q", q, 8);
        case_floats("B27-c", "input.k", k, 8);
        posenc_positions_start(&positions, 8);
        positions.length = 9;
        posenc_tensor_contiguous(&x, q, POSENC_F32, 1, 1, 1, 8);
        test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &x, NULL, NULL, NULL, &error),
                &error);
        positions.start = 5;
        positions.length = stale ? 6 : 9;
        x.data = k;
        test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &x, NULL, NULL, NULL, &error),
                &error);
        scores[stale] = 0;
        for (int i = 0; i < 8; i++) scores[stale] += (double)q[i] * (double)k[i];
    }
    assert_true(fabs(scores[0] - case_number("B27-c", "expected.score_after_redoing_the_key")) <
                1e-5);
    assert_true(fabs(scores[1] + 9.066658939552418) < 1e-5); /* what the report had */
    test_ok(posenc_plan_length_range(plan, 6, &first, &next, &error), &error);
    assert_true(9 >= next);
    posenc_plan_free(plan);
}

/* The factor of one set, of both, and by the rule; the first is what the plan tells without one. */
static void test_attention_of_sets(void **state)
{
    posenc_rope_params params = scheme(POSENC_SCALING_LONGROPE, 8);
    double got[4], rule = sqrt(1 + log(4) / log(2048));

    (void)state;
    for (int given = 0; given < 8; given++) {
        params.attention_factor = given & 1 ? 1.5 : 0;
        params.short_attention = given & 2 ? 1.25 : 0;
        params.long_attention = given & 4 ? 1.75 : 0;
        posenc_plan *plan = test_plan(&params);
        double both = given & 1 ? 1.5 : rule;
        assert_true(fabs(at(plan, 2048, 0, got) - (given & 2 ? 1.25 : both)) <= 1e-15);
        assert_true(fabs(at(plan, 2049, 0, got) - (given & 4 ? 1.75 : both)) <= 1e-15);
        assert_true(fabs(posenc_plan_attention_factor(plan) - (given & 2 ? 1.25 : both)) <= 1e-15);
        posenc_plan_free(plan);
    }
    params.factor = 0;
    params.attention_factor = params.short_attention = params.long_attention = 0;
    posenc_plan *plan = test_plan(&params);
    assert_true(at(plan, 5000, 0, got) == 1);
    posenc_plan_free(plan);
}

/* One of the two without the other is no ratio: the factor is g(1) then. */
static void test_mscale_alone(void **state)
{
    (void)state;
    for (int both = 0; both < 3; both++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 8, 8);
        posenc_plan *plan;

        params.scaling = POSENC_SCALING_YARN;
        params.factor = 40;
        params.original_max_position = 4096;
        params.mscale = both != 1 ? 0.5 : 0;
        params.mscale_all_dim = both != 0 ? 0.25 : 0;
        plan = test_plan(&params);
        double g = 1 + 0.1 * log(40), ratio = (1 + 0.05 * log(40)) / (1 + 0.025 * log(40));
        assert_true(fabs(posenc_plan_attention_factor(plan) - (both == 2 ? ratio : g)) <= 1e-15);
        posenc_plan_free(plan);
    }
}

/* B26-a: the two numbers of YaRN are separate, and the multiplier is never applied by itself. */
static void test_softmax_multiplier(void **state)
{
    static const struct {
        double factor, mscale, mscale_all_dim;
        int number;
    } cases[] = {{16, 1, 1, 2}, {40, 1, 0.707, 3}, {40, 0.707, 0.707, 4}, {40, 1, 1, 5}};
    posenc_rope_params params = scheme(POSENC_SCALING_YARN, 64);
    char name[80];

    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        params.factor = cases[n].factor;
        params.mscale = cases[n].mscale;
        params.mscale_all_dim = cases[n].mscale_all_dim;
        posenc_plan *plan = test_plan(&params);
        snprintf(name, sizeof name, "expected.%d.scale_multiplier_where_the_family_uses_it",
                 cases[n].number);
        assert_true(fabs(posenc_plan_softmax_multiplier(plan) - case_number("B26-a", name)) <=
                    4e-16);
        snprintf(name, sizeof name, "expected.%d.magnitude", cases[n].number);
        assert_true(fabs(posenc_plan_attention_factor(plan) - case_number("B26-a", name)) <=
                    4e-16);
        posenc_plan_free(plan);
    }
    params.mscale_all_dim = 0;
    posenc_plan *plan = test_plan(&params);
    assert_true(posenc_plan_softmax_multiplier(plan) == 1);
    posenc_plan_free(plan);
    assert_true(posenc_plan_softmax_multiplier(NULL) == 0);
}

/* Every length beyond L0 of DYNAMIC_NTK is a range of its own, up to the last one there is. */
static void test_ranges_of_dynamic(void **state)
{
    posenc_rope_params params = scheme(POSENC_SCALING_DYNAMIC_NTK, 32);
    posenc_plan *plan;

    (void)state;
    params.original_max_position = 2048.5; /* 2048 is the last length that it covers */
    plan = test_plan(&params);
    check_range(plan, 1, 1, 2049);
    check_range(plan, 2048, 1, 2049);
    check_range(plan, 2049, 2049, 2050);
    check_range(plan, INT64_MAX - 1, INT64_MAX - 1, INT64_MAX);
    check_range(plan, INT64_MAX, INT64_MAX, INT64_MAX);
    posenc_plan_free(plan);
    params.original_max_position = 0x1p64;
    plan = test_plan(&params);
    check_range(plan, INT64_MAX, 1, INT64_MAX);
    posenc_plan_free(plan);
    params.rotary_dim = 2;
    params.original_max_position = 16;
    plan = test_plan(&params);
    check_range(plan, 0, 1, INT64_MAX);
    posenc_plan_free(plan);
}

/* The published bases for r = 128, base 10000, s = 2, L0 = 2048, read back from the frequencies. */
static void test_bases_of_dynamic(void **state)
{
    static const struct { int64_t length; double base; } cases[] = {
        {2048, 10000}, {4096, 30527.74}, {8192, 72195.86}};
    posenc_rope_params params = scheme(POSENC_SCALING_DYNAMIC_NTK, 128);
    double got[PAIRS];

    (void)state;
    params.factor = 2;
    for (int recipe = POSENC_RECIPE_EXACT; recipe <= POSENC_RECIPE_HF_F32; recipe++) {
        params.recipe = recipe;
        posenc_plan *plan = test_plan(&params);
        for (int n = 0; n < 3; n++) {
            at(plan, cases[n].length, 0, got);
            assert_true(fabs(pow(got[32], -2) - cases[n].base) < 0.01 + 0.01 * recipe);
        }
        posenc_plan_free(plan);
    }
    /* vLLM: one table, for L0 s positions or for the length that is fixed. */
    params.recipe = POSENC_RECIPE_VLLM;
    for (int fixed = 0; fixed < 2; fixed++) {
        params.length = fixed ? 8192 : 0;
        posenc_plan *plan = test_plan(&params);
        check_range(plan, 1, 1, INT64_MAX);
        at(plan, 1, 0, got);
        assert_true(fabs(pow(got[32], -2) - cases[1 + fixed].base) < 0.02);
        posenc_plan_free(plan);
    }
}

/* Several factors: each set is the plan of that factor alone. */
static void test_factor_sets(void **state)
{
    static const int32_t recipes[] = {POSENC_RECIPE_EXACT, POSENC_RECIPE_VLLM};
    double factors[3] = {1, 2.5, 8}, got[32], alone[32];
    posenc_error error = {0, ""};

    (void)state;
    for (int r = 0; r < 2; r++) {
        posenc_rope_params params = scheme(POSENC_SCALING_LINEAR, 64);

        params.recipe = recipes[r];
        params.factors = factors;
        params.num_factors = 3;
        posenc_plan *plan = test_plan(&params);
        params.factors = NULL;
        params.num_factors = 0;
        for (int n = 0; n < 3; n++) {
            params.factor = factors[n];
            posenc_plan *one = test_plan(&params);
            at(plan, 1, n, got);
            at(one, 1, 0, alone);
            assert_memory_equal(got, alone, sizeof got);
            assert_true(fabs(got[5] * factors[n] - pow(10000, -10.0 / 64)) < 1e-7);
            posenc_plan_free(one);
        }
        test_refused(posenc_plan_inv_freq_at(plan, 1, 3, got, 32, NULL, &error),
                     POSENC_ERROR_ARGUMENT, &error, "set is 3|0..2");
        test_refused(posenc_plan_inv_freq_at(plan, 1, -1, got, 32, NULL, &error),
                     POSENC_ERROR_ARGUMENT, &error, "set is -1|0..2");
        posenc_plan_free(plan);
    }
}

static void test_facts_check_their_arguments(void **state)
{
    posenc_rope_params params = scheme(POSENC_SCALING_LONGROPE, 8);
    posenc_plan *plan = test_plan(&params);
    posenc_error error = {0, ""};
    double got[4];
    int64_t first, next;

    (void)state;
    test_refused(posenc_plan_inv_freq_at(NULL, 1, 0, got, 4, NULL, &error), POSENC_ERROR_ARGUMENT,
                 &error, "plan is NULL");
    test_refused(posenc_plan_inv_freq_at(plan, 1, 0, NULL, 4, NULL, &error), POSENC_ERROR_ARGUMENT,
                 &error, "inv_freq is NULL");
    test_refused(posenc_plan_inv_freq_at(plan, 1, 0, got, 3, NULL, &error), POSENC_ERROR_ARGUMENT,
                 &error, "count is 3|4");
    test_refused(posenc_plan_inv_freq_at(plan, 0, 0, got, 4, NULL, &error), POSENC_ERROR_ARGUMENT,
                 &error, "length is 0|> 0");
    test_refused(posenc_plan_inv_freq_at(plan, 9, 1, got, 4, NULL, &error), POSENC_ERROR_ARGUMENT,
                 &error, "set is 1|0..0");
    test_refused(posenc_plan_length_range(plan, -5, &first, &next, &error), POSENC_ERROR_ARGUMENT,
                 &error, "length is -5|> 0");
    test_refused(posenc_plan_length_range(NULL, 1, &first, &next, &error), POSENC_ERROR_ARGUMENT,
                 &error, "plan is NULL");
    test_refused(posenc_plan_length_range(plan, 1, NULL, &next, &error), POSENC_ERROR_ARGUMENT,
                 &error, "first is NULL");
    test_refused(posenc_plan_length_range(plan, 1, &first, NULL, &error), POSENC_ERROR_ARGUMENT,
                 &error, "next is NULL");
    posenc_plan_free(plan);
    assert_int_equal(posenc_plan_axes(NULL), 0);
}

/* Periods are divided once; an endless one stands still. */
static void test_periods_and_axes(void **state)
{
    static const double periods[4] = {1, 3, 1e30, (double)INFINITY};
    int32_t axes[4] = {0, 2, 1, 2};
    posenc_rope_params params = scheme(POSENC_SCALING_NONE, 8);
    double got[4];

    (void)state;
    params.frequency_source = POSENC_FREQUENCIES_PERIODS;
    params.frequencies = periods;
    params.axes = 3;
    params.axis_of_pair = axes;
    posenc_plan *plan = test_plan(&params);
    at(plan, 0, 0, got);
    assert_true(got[0] == 1 && got[1] == 1.0 / 3 && got[2] == 1 / 1e30 && got[3] == 0);
    assert_int_equal(posenc_plan_axes(plan), 3);
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths_in_any_order),
        cmocka_unit_test(test_width_2),
        cmocka_unit_test(test_within_the_trained_length),
        cmocka_unit_test(test_longrope_sets),
        cmocka_unit_test(test_stale_keys),
        cmocka_unit_test(test_attention_of_sets),
        cmocka_unit_test(test_mscale_alone),
        cmocka_unit_test(test_softmax_multiplier),
        cmocka_unit_test(test_ranges_of_dynamic),
        cmocka_unit_test(test_bases_of_dynamic),
        cmocka_unit_test(test_factor_sets),
        cmocka_unit_test(test_facts_check_their_arguments),
        cmocka_unit_test(test_periods_and_axes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
