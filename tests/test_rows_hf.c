/* SPDX-License-Identifier: MIT */
/* The recipe hf_f32, operation by operation: f32 angle, then correctly rounded cosine and sine. */
#include "support/half.h"
#include "support/random.h"
#include "support/test.h"

#include <math.h>

/* cos or sin of a float, correctly rounded. long double leaves 2^-40 of an ulp of doubt; the test
 * accepts both neighbours there, and counts how often: never so far. */
static int is_rounded(float got, long double exact)
{
    long double doubt = fabsl(exact) * 0x1p-60L;

    return got == (float)(exact - doubt) || got == (float)(exact + doubt);
}

static posenc_plan *hf_plan(int32_t isa, int32_t row_dtype, double factor, int32_t width)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, width, width);

    params.recipe = POSENC_RECIPE_HF_F32;
    params.row_dtype = row_dtype;
    params.attention_factor = factor;
    params.base = 500000;
    params.isa = isa;
    return test_plan(&params);
}

static void rows_from(const posenc_plan *plan, int64_t start, int64_t count, float *out)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows;

    posenc_positions_start(&positions, start);
    posenc_tensor_contiguous(&rows, out, POSENC_F32, 1, count, 1,
                             2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
}

/* One row against its definition. */
static void check_row(int64_t position, const double *frequencies, size_t pairs, const float *row)
{
    for (size_t i = 0; i < pairs; i++) {
        float frequency = (float)frequencies[i];
        float angle = (float)position * frequency;

        assert_true((double)frequency == frequencies[i]);
        if (!is_rounded(row[i], cosl((long double)angle))
            || !is_rounded(row[pairs + i], sinl((long double)angle))) {
            fail_msg("position %lld, angle %a: (%a, %a)", (long long)position, (double)angle,
                     (double)row[i], (double)row[pairs + i]);
        }
    }
}

static void test_definition(void **state)
{
    enum { R = 128, N = 256 };
    static float rows[N * R], other[N * R];
    static const int64_t starts[] = {0, 1000, 4095, 131071 - 100, 1048575, 16777216 - 128, 99999999,
                                     INT32_MAX - N, -N, -70000, INT32_MIN};
    double frequencies[R / 2];
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas), count = test_quick() ? 24 : N;

    (void)state;
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        for (size_t k = 0; k < n; k++) {
            posenc_plan *plan = hf_plan(isas[k], 0, 0, R);

            test_ok(posenc_plan_inv_freq(plan, frequencies, R / 2, NULL), NULL);
            rows_from(plan, starts[s], (int64_t)count, k ? other : rows);
            posenc_plan_free(plan);
            if (k) assert_memory_equal(rows, other, count * R * sizeof(float));
        }
        for (size_t t = 0; t < count; t++) {
            check_row(starts[s] + (int64_t)t, frequencies, R / 2, rows + t * R);
        }
    }
}

/* Of either sign of zero the systems have the first. */
static void test_position_zero(void **state)
{
    float row[8];

    (void)state;
    for (int32_t recipe = POSENC_RECIPE_EXACT; recipe <= POSENC_RECIPE_GGML; recipe++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 8, 8);
        posenc_plan *plan;

        params.recipe = recipe;
        plan = test_plan(&params);
        rows_from(plan, 0, 1, row);
        for (int i = 0; i < 4; i++) assert_true(row[i] == 1 && row[4 + i] == 0);
        for (int i = 4; i < 8; i++) assert_false(signbit(row[i]));
        posenc_plan_free(plan);
    }
}

/* Angles of every size from random float frequencies: millions of cosines and sines. */
static void test_many_angles(void **state)
{
    enum { R = 4096, N = 16 };
    static double frequencies[R / 2], used[R / 2];
    static float rows[N * R];
    struct test_random random = {11};
    int rounds = test_quick() ? 2 : 60;

    (void)state;
    for (int round = 0; round < rounds; round++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, R, R);
        posenc_plan *plan;
        int64_t start = (int64_t)(test_bits(&random) >> (1 + test_below(&random, 31)));

        for (int i = 0; i < R / 2; i++) {
            float mantissa = 1.0f + (float)(test_bits(&random) >> 9) * 0x1p-23f;

            frequencies[i] = ldexp((double)mantissa, -(int)test_below(&random, 24));
        }
        params.recipe = POSENC_RECIPE_HF_F32;
        params.frequency_source = POSENC_FREQUENCIES_INVERSE;
        params.frequencies = frequencies;
        plan = test_plan(&params);
        test_ok(posenc_plan_inv_freq(plan, used, R / 2, NULL), NULL);
        assert_memory_equal(used, frequencies, sizeof used);
        rows_from(plan, start > INT32_MAX - N ? INT32_MAX - N : start, N, rows);
        for (int t = 0; t < N; t++) {
            check_row((start > INT32_MAX - N ? INT32_MAX - N : start) + t, frequencies, R / 2,
                      rows + t * R);
        }
        posenc_plan_free(plan);
    }
}

/* times float32(A), then to the row's type: each one rounding of the row without. */
static void test_factor_and_dtype(void **state)
{
    static const double factors[] = {1.0, 1.2079441541679836, 0.8, 2.5};
    static const int32_t dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    enum { R = 64, N = 100 };
    static float plain[N * R], made[N * R];
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (size_t k = 0; k < n; k++) {
        posenc_plan *base = hf_plan(isas[k], POSENC_F32, 1.0, R);

        rows_from(base, 1800, N, plain);
        posenc_plan_free(base);
        for (size_t f = 0; f < 4; f++) {
            for (size_t d = 0; d < 3; d++) {
                posenc_plan *plan = hf_plan(isas[k], dtypes[d], factors[f], R);

                rows_from(plan, 1800, N, made);
                posenc_plan_free(plan);
                for (int i = 0; i < N * R; i++) {
                    float expected = plain[i] * (float)factors[f];

                    if (d) {
                        uint16_t bits = test_narrow((double)expected, dtypes[d]);
                        expected = (float)test_widen(bits, dtypes[d]);
                    }
                    if (expected != made[i]) {
                        fail_msg("factor %g, dtype %d: %a instead of %a", factors[f], dtypes[d],
                                 (double)made[i], (double)expected);
                    }
                }
            }
        }
    }
}

/* An f32 product is not the exact one: the two recipes must differ where the field's does. */
static void test_differs_from_exact(void **state)
{
    enum { R = 128 };
    float hf[R], exact[R];
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, R, R);
    posenc_plan *plan = hf_plan(POSENC_ISA_DEFAULT, 0, 0, R);
    double worst = 0;

    (void)state;
    rows_from(plan, 131071, 1, hf);
    posenc_plan_free(plan);
    params.base = 500000;
    plan = test_plan(&params);
    rows_from(plan, 131071, 1, exact);
    posenc_plan_free(plan);
    for (int i = 0; i < R; i++) {
        double gap = fabs((double)hf[i] - (double)exact[i]);

        if (!(gap <= worst)) worst = gap; /* not fmax: gcc 12.2 for aarch64 fails on it */
    }
    assert_true(worst > 1e-4 && worst < 2e-2);
}

/* Frequencies down to the smallest float: the angle keeps all its bits, and so does its sine. */
static void test_tiny_angles(void **state)
{
    enum { PAIRS = 150 };
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 2 * PAIRS, 2 * PAIRS);
    double frequencies[PAIRS];
    float rows[3 * 2 * PAIRS];
    posenc_plan *plan;

    (void)state;
    for (int i = 0; i < PAIRS; i++) frequencies[i] = (double)(float)ldexp(1.2345678, -i);
    params.recipe = POSENC_RECIPE_HF_F32;
    params.frequency_source = POSENC_FREQUENCIES_INVERSE;
    params.frequencies = frequencies;
    plan = test_plan(&params);
    rows_from(plan, 1, 3, rows);
    for (int t = 0; t < 3; t++) check_row(t + 1, frequencies, PAIRS, rows + t * 2 * PAIRS);
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_position_zero),
        cmocka_unit_test(test_many_angles),
        cmocka_unit_test(test_factor_and_dtype),
        cmocka_unit_test(test_differs_from_exact),
        cmocka_unit_test(test_tiny_angles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
