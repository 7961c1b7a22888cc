/* SPDX-License-Identifier: MIT */
/* Rows and rotations of real models against stored numbers that 50-digit arithmetic made. */
#include "support/numbers.h"
#include "support/random.h"
#include "support/test.h"
#include "support/truth.h"

#include <math.h>
#include <stdio.h>

enum { CHOSEN = 8, PLAN_NUMBERS = 17 };

/* The numbers of a line "plan", in the order of extract.py. */
static posenc_rope_params params_of(const double n[PLAN_NUMBERS])
{
    posenc_rope_params params = test_params((int32_t)n[0], (int32_t)n[1], (int32_t)n[2]);

    params.rotary_offset = (int32_t)n[3];
    params.base = n[4];
    params.scaling = (int32_t)n[6];
    if (params.scaling == POSENC_SCALING_NONE) return params;
    params.factor = n[7];
    params.attention_factor = n[8];
    params.original_max_position = n[9];
    params.low_freq_factor = n[10];
    params.high_freq_factor = n[11];
    params.beta_fast = n[12];
    params.beta_slow = n[13];
    params.mscale = n[14];
    params.mscale_all_dim = n[15];
    params.truncate = (int32_t)n[16];
    return params;
}

static void row_at(const posenc_plan *plan, int64_t position, float *row)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows;

    posenc_positions_start(&positions, position);
    posenc_tensor_contiguous(&rows, row, POSENC_F32, 1, 1, 1, 2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
}

/* One model's frequencies: within one ulp, and mostly equal, as 17 digits are one rounding more. */
static size_t check_frequencies(const char *id, const posenc_plan *plan, const double *pairs,
                                size_t n)
{
    double expected[CHOSEN], made[256];
    size_t equal = 0;

    test_numbers("golden_rows.txt", id, "inv_freq", expected, CHOSEN);
    test_ok(posenc_plan_inv_freq(plan, made, (size_t)posenc_plan_pairs(plan), NULL), NULL);
    for (size_t i = 0; i < n; i++) {
        double got = made[(size_t)pairs[i]];

        if (fabs(got - expected[i]) > nextafter(expected[i], INFINITY) - expected[i]) {
            fail_msg("%s: frequency %g is %a instead of %a", id, pairs[i], got, expected[i]);
        }
        equal += got == expected[i];
    }
    return equal;
}

/* transformers' own float32 powf is up to 2 ulp off; ours is correctly rounded. */
static void check_f32(const char *id, posenc_rope_params params, const double *pairs, size_t n)
{
    double expected[CHOSEN], made[256];
    posenc_plan *plan;

    params.recipe = POSENC_RECIPE_HF_F32;
    plan = test_plan(&params);
    test_numbers("golden_rows.txt", id, "inv_freq_f32", expected, CHOSEN);
    test_ok(posenc_plan_inv_freq(plan, made, (size_t)posenc_plan_pairs(plan), NULL), NULL);
    for (size_t i = 0; i < n; i++) {
        float got = (float)made[(size_t)pairs[i]], want = (float)expected[i];

        if (fabsf(got - want) > 2.5f * (nextafterf(want, INFINITY) - want)) {
            fail_msg("%s: f32 frequency %g is %a instead of %a", id, pairs[i], (double)got,
                     (double)want);
        }
    }
    posenc_plan_free(plan);
}

static void check_positions(const char *id, const posenc_plan *plan, const double *pairs, size_t n)
{
    double positions[16], cosine[CHOSEN], sine[CHOSEN];
    double factor = posenc_plan_attention_factor(plan);
    size_t count = test_numbers("golden_rows.txt", id, "positions", positions, 16);
    int half = posenc_plan_pairs(plan);

    for (size_t p = 0; p < count; p++) {
        /* The stored angles come from the formula, ours from its nearest double. */
        double bound = (double)test_row_bound(factor) + factor * positions[p] * 0x1p-52;
        float row[512];
        char name[64];

        snprintf(name, sizeof name, "cos.%.0f", positions[p]);
        test_numbers("golden_rows.txt", id, name, cosine, CHOSEN);
        snprintf(name, sizeof name, "sin.%.0f", positions[p]);
        test_numbers("golden_rows.txt", id, name, sine, CHOSEN);
        row_at(plan, (int64_t)positions[p], row);
        for (size_t i = 0; i < n; i++) {
            int at = (int)pairs[i];
            double c = (double)row[at], s = (double)row[half + at];

            if (fabs(c - factor * cosine[i]) > bound || fabs(s - factor * sine[i]) > bound) {
                fail_msg("%s: position %g, pair %d: (%.9g, %.9g) instead of %.17g x (%.17g, %.17g)",
                         id, positions[p], at, c, s, factor, cosine[i], sine[i]);
            }
        }
    }
}

static void test_models(void **state)
{
    int32_t isas[TEST_ISAS];
    size_t isa_count = test_isas(isas), models = 0, numbers = 0, equal = 0;
    char id[128];

    (void)state;
    while (test_number_id("golden_rows.txt", "plan", models, id, sizeof id)) {
        double numbers_of_plan[PLAN_NUMBERS], pairs[CHOSEN];
        posenc_rope_params params;
        size_t n;

        assert_int_equal(test_numbers("golden_rows.txt", id, "plan", numbers_of_plan, PLAN_NUMBERS),
                         PLAN_NUMBERS);
        n = test_numbers("golden_rows.txt", id, "pairs", pairs, CHOSEN);
        params = params_of(numbers_of_plan);
        for (size_t k = 0; k < isa_count; k++) {
            posenc_plan *plan;
            double factor;

            params.isa = isas[k];
            plan = test_plan(&params);
            factor = posenc_plan_attention_factor(plan);
            if (fabs(factor - numbers_of_plan[5]) > 1e-14 * factor) {
                fail_msg("%s: attention factor %.17g instead of %.17g", id, factor,
                         numbers_of_plan[5]);
            }
            if (k == 0) {
                equal += check_frequencies(id, plan, pairs, n);
                check_f32(id, params, pairs, n);
            }
            check_positions(id, plan, pairs, n);
            posenc_plan_free(plan);
        }
        models++;
        numbers += n;
    }
    assert_true(models >= 50);
    assert_true(equal * 100 >= numbers * 98);
}

/* One stored rotation, q or k, forward or inverse, on one ISA. */
static void check_rotation(const char *id, const double n[9], const char *name, int32_t direction,
                           int32_t isa)
{
    static double expected[4000];
    static float x[4000], in[4000];
    size_t step = (size_t)n[8], count = (size_t)(n[0] * n[1] * n[2] * n[3]);
    size_t stored = test_numbers("golden_rotations.txt", id, name, expected, 4000);
    struct test_random random = {(uint32_t)n[7]};
    posenc_rope_params params = test_params((int32_t)n[5], (int32_t)n[3], (int32_t)n[4]);
    posenc_positions positions;
    posenc_tensor tensor;
    posenc_error error = {0, ""};
    posenc_plan *plan;

    params.isa = isa;
    plan = test_plan(&params);
    assert_int_equal(stored, (count + step - 1) / step);
    for (size_t i = 0; i < count; i++) x[i] = in[i] = test_unit(&random);
    posenc_positions_start(&positions, (int64_t)n[6]);
    posenc_tensor_contiguous(&tensor, x, POSENC_F32, (int64_t)n[0], (int64_t)n[1], (int64_t)n[2],
                             (int64_t)n[3]);
    test_ok(posenc_rope(plan, direction, &positions, &tensor, NULL, NULL, NULL, &error), &error);
    for (size_t i = 0; i < stored; i++) {
        size_t at = i * step;

        /* |a| + |b| <= 2 for inputs in [-1, 1). */
        if (fabs((double)x[at] - expected[i]) > 3 * 0x1p-24 * 2) {
            fail_msg("rotation %s %s: element %zu is %.9g instead of %.17g", id, name, at,
                     (double)x[at], expected[i]);
        }
        if (at % (size_t)n[3] >= (size_t)n[4]) assert_true(x[at] == in[at]);
    }
    posenc_plan_free(plan);
}

static void test_rotations(void **state)
{
    int32_t isas[TEST_ISAS];
    size_t isa_count = test_isas(isas), cases = 0;
    char id[16];

    (void)state;
    for (; test_number_id("golden_rotations.txt", "case", cases, id, sizeof id); cases++) {
        double numbers[9];

        test_numbers("golden_rotations.txt", id, "case", numbers, 9);
        for (size_t k = 0; k < isa_count; k++) {
            check_rotation(id, numbers, "rotated", POSENC_FORWARD, isas[k]);
            if (cases < 10) check_rotation(id, numbers, "rotated_inverse", POSENC_INVERSE, isas[k]);
        }
    }
    assert_int_equal(cases, 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_rotations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
