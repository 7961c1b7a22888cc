/* SPDX-License-Identifier: MIT */
/* Rows of real positions, rows of doubles, and rows with the decay of xPos, within their bounds. */
#include "support/numbers.h"
#include "support/random.h"
#include "support/test.h"
#include "support/truth.h"

#include <math.h>
#include <stdio.h>

/* 0.51 x 2^-53 x 2^ceil(log2 max(1, A)): half of what is promised, little more than a rounding. */
static long double wide_bound(double factor)
{
    long double bound = 0.51L * 0x1p-53L;

    for (double a = 1; a < factor; a *= 2) bound *= 2;
    return bound;
}

static void rows_of(const posenc_plan *plan, const void *ids, int32_t ids_dtype, size_t count,
                    void *out, int32_t dtype)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows;

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = ids_dtype;
    positions.ids = ids;
    positions.stride[1] = 1;
    posenc_tensor_contiguous(&rows, out, dtype, 1, (int64_t)count, 1,
                             2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
}

static size_t some_positions(double *ids, size_t scattered, uint32_t seed)
{
    static const double special[] = {
        0,         -0.0,      0.25,          -0.25,        0.5,   1e-9, -1e-9, 0x1p-300,
        -1e-310,   0x1p-1074, 1.5,           -7.75,        3,     -3,   0.1,   2147483646.5,
        INT32_MIN, INT32_MAX, 131071.000001, 1e6 + 1.0 / 3, 2147483647.5,      -2147483647.5};
    struct test_random random = {seed};
    size_t n = sizeof special / sizeof *special;

    memcpy(ids, special, sizeof special);
    while (n < scattered) {
        double fraction = ((double)test_bits(&random) + (double)test_bits(&random) * 0x1p-32)
                          * 0x1p-31 - 1;

        ids[n++] = ldexp(fraction, 31 - (int)test_below(&random, 60));
    }
    return n;
}

static void check_values(const posenc_plan *plan, const double *ids, size_t count, const void *rows,
                         int32_t dtype)
{
    size_t pairs = (size_t)posenc_plan_pairs(plan);
    double factor = posenc_plan_attention_factor(plan), frequencies[64];
    long double bound = dtype == POSENC_F64 ? wide_bound(factor) : test_row_bound(factor);

    test_ok(posenc_plan_inv_freq(plan, frequencies, pairs, NULL), NULL);
    for (size_t n = 0; n < count * pairs; n++) {
        size_t t = n / pairs, i = n % pairs, at = t * 2 * pairs + i;
        long double c, s, got[2];

        for (size_t part = 0; part < 2; part++) {
            got[part] = dtype == POSENC_F64
                            ? (long double)((const double *)rows)[at + part * pairs]
                            : (long double)((const float *)rows)[at + part * pairs];
        }
        test_cos_sin_real(ids[t], frequencies[i], &c, &s);
        c *= (long double)factor;
        s *= (long double)factor;
        if (!(fabsl(got[0] - c) <= bound && fabsl(got[1] - s) <= bound)) {
            fail_msg("position %a, frequency %a: (%La, %La) instead of (%La, %La)", ids[t],
                     frequencies[i], got[0], got[1], c, s);
        }
    }
}

/* Both types of rows against the truth on the scalar ISA, all others bit for bit. */
static void check_plan(posenc_rope_params params, const double *ids, size_t count)
{
    static double wide[2][600 * 128];
    static float narrow[2][600 * 128];
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas), size = count * (size_t)params.rotary_dim;

    for (size_t k = 0; k < n; k++) {
        posenc_plan *plan;

        params.isa = isas[k];
        plan = test_plan(&params);
        rows_of(plan, ids, POSENC_F64, count, narrow[k > 0], POSENC_F32);
        rows_of(plan, ids, POSENC_F64, count, wide[k > 0], POSENC_F64);
        if (k == 0) {
            check_values(plan, ids, count, narrow[0], POSENC_F32);
            check_values(plan, ids, count, wide[0], POSENC_F64);
        } else {
            assert_memory_equal(narrow[0], narrow[1], size * sizeof(float));
            assert_memory_equal(wide[0], wide[1], size * sizeof(double));
        }
        posenc_plan_free(plan);
    }
}

static void test_bounds(void **state)
{
    static const double factors[] = {1, 0.8, 1.2079441541679836, 2, 3.7, 1024.5};
    double ids[600], frequencies[64];
    size_t n = some_positions(ids, test_quick() ? 60 : 600, 1);
    struct test_random random = {2};

    (void)state;
    for (int i = 0; i < 6; i++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 128, 128);

        params.attention_factor = factors[i];
        params.base = i % 2 ? 500000 : 10000;
        check_plan(params, ids, n);
        for (int j = 0; j < 64; j++) {
            frequencies[j] = ldexp(1 + (double)test_bits(&random) * 0x1p-32, j * 2 - 53);
        }
        params.frequency_source = POSENC_FREQUENCIES_INVERSE;
        params.frequencies = frequencies;
        check_plan(params, ids, n);
    }
}

/* An integral real position has the bits of the integer, wherever it stands among others. */
static void test_integers(void **state)
{
    enum { N = 300, R = 90 };
    static float whole[N * R], real[N * R];
    static double wide_whole[N * R], wide_real[N * R], ids[N];
    static int64_t integers[N];
    struct test_random random = {3};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (int i = 0; i < N; i++) {
        integers[i] = (int64_t)(int32_t)test_bits(&random) >> test_below(&random, 31);
        if (i < 100) integers[i] = 70 - i;
        if (i == 200) integers[i] = INT32_MIN;
        ids[i] = (double)integers[i];
    }
    for (size_t k = 0; k < n; k++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, R, R);
        posenc_plan *plan;

        params.isa = isas[k];
        plan = test_plan(&params);
        rows_of(plan, integers, POSENC_I64, N, whole, POSENC_F32);
        rows_of(plan, integers, POSENC_I64, N, wide_whole, POSENC_F64);
        rows_of(plan, ids, POSENC_F64, N, real, POSENC_F32);
        rows_of(plan, ids, POSENC_F64, N, wide_real, POSENC_F64);
        assert_memory_equal(whole, real, sizeof whole);
        assert_memory_equal(wide_whole, wide_real, sizeof wide_whole);
        for (int i = 0; i < N; i += 3) ids[i] += 0.5;
        rows_of(plan, ids, POSENC_F64, N, real, POSENC_F32);
        for (int i = 0; i < N; i++) {
            int equal = !memcmp(whole + i * R, real + i * R, R * sizeof(float));

            assert_int_equal(equal, i % 3 != 0);
        }
        for (int i = 0; i < N; i += 3) ids[i] -= 0.5;
        posenc_plan_free(plan);
    }
}

/* Cosines 1 and sines +0, which no setting of the CPU for subnormal numbers may change. */
static int is_row_of_zero(const posenc_plan *plan, double position)
{
    double row[64];
    int right = 1;

    rows_of(plan, &position, POSENC_F64, 1, row, POSENC_F64);
    for (int i = 0; i < 32; i++) {
        right &= row[i] == 1 && row[32 + i] == 0 && !signbit(row[32 + i]);
    }
    return right;
}

/* Row(-p) is Row(p) with the sines negated, between integers too. */
static void test_conjugate(void **state)
{
    enum { R = 64, N = 200 };
    double ids[N], plus[R], minus[R];
    float plus_f32[R], minus_f32[R];
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, R, R);
    posenc_plan *plan = test_plan(&params);

    (void)state;
    some_positions(ids, N, 4);
    for (int t = 0; t < N; t++) {
        double negative = -ids[t];

        if (fabs(ids[t]) < 0x1p-1022) { /* counts as 0 */
            assert_true(is_row_of_zero(plan, ids[t]));
            continue;
        }
        if (negative == 0x1p31) continue;
        rows_of(plan, &ids[t], POSENC_F64, 1, plus, POSENC_F64);
        rows_of(plan, &negative, POSENC_F64, 1, minus, POSENC_F64);
        rows_of(plan, &ids[t], POSENC_F64, 1, plus_f32, POSENC_F32);
        rows_of(plan, &negative, POSENC_F64, 1, minus_f32, POSENC_F32);
        for (int i = R / 2; i < R; i++) {
            minus[i] = -minus[i];
            minus_f32[i] = -minus_f32[i];
        }
        assert_memory_equal(plus, minus, sizeof plus);
        assert_memory_equal(plus_f32, minus_f32, sizeof plus_f32);
    }
    posenc_plan_free(plan);
}

static void check_stored_value(double position, double frequency, long double c, long double s)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 2, 2);
    double row[2];
    float narrow[2];
    posenc_plan *plan;

    params.frequency_source = POSENC_FREQUENCIES_INVERSE;
    params.frequencies = &frequency;
    plan = test_plan(&params);
    rows_of(plan, &position, POSENC_F64, 1, row, POSENC_F64);
    rows_of(plan, &position, POSENC_F64, 1, narrow, POSENC_F32);
    posenc_plan_free(plan);
    if (!(fabsl((long double)row[0] - c) <= wide_bound(1)
          && fabsl((long double)row[1] - s) <= wide_bound(1)
          && fabsl((long double)narrow[0] - c) <= test_row_bound(1)
          && fabsl((long double)narrow[1] - s) <= test_row_bound(1))) {
        fail_msg("%.17g x %.17g: (%a, %a)", position, frequency, row[0], row[1]);
    }
}

static int32_t side_of(int k) { return k ? POSENC_XPOS_KEYS : POSENC_XPOS_QUERIES; }

/* Rows of both sides against the decay times the plain row of doubles. */
static void check_decay(int32_t r, int32_t i, int64_t center, double scale_base, double position,
                        long double decay)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, r, r);
    posenc_plan *plain = test_plan(&params);
    double row[64], turned[64], frequencies[32];
    float narrow[64];
    long double c, s;

    rows_of(plain, &position, POSENC_F64, 1, row, POSENC_F64);
    test_ok(posenc_plan_inv_freq(plain, frequencies, (size_t)r / 2, NULL), NULL);
    test_cos_sin_real(position, frequencies[i], &c, &s);
    posenc_plan_free(plain);
    params.xpos_center = center;
    params.xpos_scale_base = scale_base;
    for (int k = 0; k < 2; k++) {
        long double scale = k ? 1 / decay : decay;
        long double bound = test_row_bound((double)scale) + 0x1p-150L;
        posenc_plan *plan;

        params.xpos = side_of(k);
        plan = test_plan(&params);
        rows_of(plan, &position, POSENC_F64, 1, turned, POSENC_F64);
        rows_of(plan, &position, POSENC_F64, 1, narrow, POSENC_F32);
        posenc_plan_free(plan);
        if (!(fabsl((long double)turned[i] - c * scale) <= wide_bound((double)scale)
              && fabsl((long double)turned[r / 2 + i] - s * scale) <= wide_bound((double)scale))) {
            fail_msg("xpos %d, pair %d of %d, position %g: (%a, %a)", k, i, r, position, turned[i],
                     turned[r / 2 + i]);
        }
        if (isinf(narrow[i]) || isinf(narrow[r / 2 + i])) {
            assert_true(scale > 0x1p100L);
            continue;
        }
        if (!(fabsl((long double)narrow[i] - c * scale) <= bound
              && fabsl((long double)narrow[r / 2 + i] - s * scale) <= bound)) {
            fail_msg("xpos %d, pair %d of %d, position %g: (%a, %a) in float32", k, i, r, position,
                     (double)narrow[i], (double)narrow[r / 2 + i]);
        }
    }
}

/* tests/make_rows.py exact. */
static void test_stored(void **state)
{
    char path[512], line[512];
    FILE *file = fopen(test_data_path("rows_exact.txt", path, sizeof path), "r");
    double position = 0, frequency = 0, scale_base;
    long double c, s;
    int values = 0, decays = 0, r, i, center;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*d at %lg %lg", &position, &frequency) == 2) continue;
        if (sscanf(line, "%*d value %Lg %Lg", &c, &s) == 2) {
            check_stored_value(position, frequency, c, s);
            values++;
        } else if (sscanf(line, "%*d xpos %d %d %d %lg %lg %Lg", &r, &i, &center, &scale_base,
                          &position, &c) == 6) {
            check_decay(r, i, center, scale_base, position, c);
            decays++;
        }
    }
    fclose(file);
    assert_int_equal(values, 640);
    assert_int_equal(decays, 126);
}

/* Beyond e^+-600 the decay is cut: no NaN, no infinity in doubles. */
static void test_decay_ends(void **state)
{
    static const double ids[] = {0, INT32_MAX, INT32_MIN, 2e6, -2e6};
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 64, 64);

    (void)state;
    params.xpos_scale_base = 512;
    for (int k = 0; k < 2; k++) {
        double row[5 * 64];
        float narrow[5 * 64];
        posenc_plan *plan;

        params.xpos = side_of(k);
        plan = test_plan(&params);
        rows_of(plan, ids, POSENC_F64, 5, row, POSENC_F64);
        rows_of(plan, ids, POSENC_F64, 5, narrow, POSENC_F32);
        posenc_plan_free(plan);
        for (int i = 0; i < 5 * 64; i++) {
            assert_true(isfinite(row[i]));
            assert_false(isnan(narrow[i]));
        }
        for (int n = 0; n < 2 * 32; n++) { /* the ends of the range: all pairs are cut */
            int t = 1 + n / 32, i = n % 32, small = (t == 1) == (k == 0);
            double size = hypot(row[t * 64 + i], row[t * 64 + 32 + i]);

            assert_true(size > (small ? 0x1p-866 : 0x1p865) && size < (small ? 0x1p-865 : 0x1p866));
        }
    }
}

/* Tables are copied, and widened for rows of doubles. */
static void test_tables(void **state)
{
    static const float table[2][3 * 4] = {
        {1, 0.1f, 0.2f, 0.3f, 1e-40f, 0.5f, 0.6f, 0.7f, 2, 3, 4, 5},
        {0, 1, 2, 3, 4, 5, 6, 7, -8, 9, 10, 11}};
    static const int32_t ids[] = {2, 0, 1};
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 8, 8);
    posenc_plan *plan;
    double wide[3 * 8];
    float narrow[3 * 8];

    (void)state;
    params.cos_table = table[0];
    params.sin_table = table[1];
    params.cos_rows = params.sin_rows = 3;
    plan = test_plan(&params);
    rows_of(plan, ids, POSENC_I32, 3, wide, POSENC_F64);
    rows_of(plan, ids, POSENC_I32, 3, narrow, POSENC_F32);
    for (int n = 0; n < 24; n++) {
        float expected = table[n % 8 / 4][ids[n / 8] * 4 + n % 4];

        assert_true(wide[n] == (double)expected && narrow[n] == expected);
    }
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds), cmocka_unit_test(test_integers),
        cmocka_unit_test(test_conjugate), cmocka_unit_test(test_stored),
        cmocka_unit_test(test_decay_ends), cmocka_unit_test(test_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
