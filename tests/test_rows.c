/* SPDX-License-Identifier: MIT */
/* Rows: scalar against the truth within the promised bound, every ISA against scalar. */
#include "support/guard.h"
#include "support/random.h"
#include "support/test.h"
#include "support/truth.h"

#include <math.h>
#include <stdio.h>

enum { PAIRS = 64 };

/* Rows of explicit positions, contiguous. */
static void rows_of(const posenc_plan *plan, const int64_t *ids, size_t count, float *out)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows;

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I64;
    positions.ids = ids;
    positions.stride[0] = (int64_t)count;
    positions.stride[1] = 1;
    posenc_tensor_contiguous(&rows, out, POSENC_F32, 1, (int64_t)count, 1,
                             2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
}

/* Holds rows against the truth of position times the plan's own frequencies. */
static void check_rows(const posenc_plan *plan, const int64_t *ids, size_t count, const float *rows)
{
    size_t pairs = (size_t)posenc_plan_pairs(plan);
    double factor = posenc_plan_attention_factor(plan);
    long double bound = test_row_bound(factor), c, s;
    double *frequencies = malloc(pairs * sizeof *frequencies);

    test_ok(posenc_plan_inv_freq(plan, frequencies, pairs, NULL), NULL);
    for (size_t t = 0; t < count; t++) {
        for (size_t i = 0; i < pairs; i++) {
            long double got_c = (long double)rows[t * 2 * pairs + i];
            long double got_s = (long double)rows[t * 2 * pairs + pairs + i];

            test_cos_sin(ids[t], frequencies[i], &c, &s);
            c *= (long double)factor;
            s *= (long double)factor;
            if (!(fabsl(got_c - c) <= bound && fabsl(got_s - s) <= bound)) {
                fail_msg("position %lld, frequency %a: (%La, %La) instead of (%La, %La)",
                         (long long)ids[t], frequencies[i], got_c, got_s, c, s);
            }
        }
    }
    free(frequencies);
}

/* Scalar against the truth, then every ISA against scalar, bit for bit. */
static void check_plan(posenc_rope_params params, const int64_t *ids, size_t count)
{
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas), size = count * (size_t)params.rotary_dim * sizeof(float);
    float *scalar = malloc(size), *other = malloc(size);

    for (size_t k = 0; k < n; k++) {
        posenc_plan *plan;

        params.isa = isas[k];
        plan = test_plan(&params);
        assert_int_equal(posenc_plan_isa(plan), isas[k]);
        memset(other, 0xa5, size);
        rows_of(plan, ids, count, k == 0 ? scalar : other);
        if (k == 0) {
            check_rows(plan, ids, count, scalar);
        } else if (memcmp(scalar, other, size) != 0) {
            fail_msg("%s differs from scalar", posenc_isa_name(isas[k]));
        }
        posenc_plan_free(plan);
    }
    free(scalar);
    free(other);
}

/* Positions near 0, all over the range of both signs, and its ends. */
static size_t some_positions(int64_t *ids, size_t scattered, uint32_t seed)
{
    struct test_random random = {seed};
    size_t n = 0;

    for (int64_t p = -40; p <= 40; p++) ids[n++] = p;
    for (size_t i = 0; i < scattered; i++) {
        unsigned shift = test_below(&random, 31);

        ids[n++] = (int64_t)(int32_t)test_bits(&random) >> shift;
    }
    ids[n++] = INT32_MIN;
    ids[n++] = INT32_MIN + 1;
    ids[n++] = INT32_MAX;
    ids[n++] = INT32_MAX - 15;
    return n;
}

static void test_formula(void **state)
{
    static const double bases[] = {10000, 500000, 1e6, 1e7, 1.5, 160000, 1e15};
    static const int32_t widths[] = {2, 24, 96, 128, 256};
    static int64_t ids[1200];
    size_t n = some_positions(ids, test_quick() ? 60 : 1000, 1);

    (void)state;
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            posenc_rope_params params = test_params(POSENC_SPLIT_HALF, widths[w], widths[w]);

            params.base = bases[b];
            check_plan(params, ids, n);
        }
    }
}

static void test_attention_factors(void **state)
{
    static const double factors[] = {0.25, 0.8, 1.0,   1.0000001, 1.2079441541679836,
                                     2.0,  3.7, 1024.5};
    static int64_t ids[400];
    size_t n = some_positions(ids, 200, 2);

    (void)state;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        posenc_rope_params params = test_params(POSENC_ADJACENT, 64, 64);

        params.attention_factor = factors[i];
        check_plan(params, ids, n);
    }
}

/* Frequencies of the caller's, from far below the formula's to far above; divisors. */
static void test_given_frequencies(void **state)
{
    static int64_t ids[600];
    double frequencies[PAIRS];
    struct test_random random = {3};
    size_t n = some_positions(ids, test_quick() ? 60 : 400, 4);
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 2 * PAIRS, 2 * PAIRS);

    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        double mantissa = 1.0 + (double)test_bits(&random) * 0x1p-32;

        frequencies[i] = ldexp(mantissa, i - 53);
    }
    params.frequency_source = POSENC_FREQUENCIES_INVERSE;
    params.frequencies = frequencies;
    check_plan(params, ids, n);
    for (int i = 0; i < PAIRS; i++) frequencies[i] = 1.0 + i * 0.25;
    params.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    check_plan(params, ids, n);
}

/* Positions that bring position * frequency closest to multiples of a quarter turn: denominators of
 * the convergents and semiconvergents of frequency / (pi/2). */
static size_t crossings(double frequency, int64_t *ids, size_t capacity)
{
    long double x = (long double)frequency / 1.570796326794896619231321691639751442L;
    int64_t before = 1, now = 0;
    size_t n = 0;

    for (int step = 0; step < 60; step++) {
        long double whole = floorl(x);

        for (int64_t k = 1; (long double)k <= whole && k <= 3; k++) {
            int64_t q = before + k * now;

            if (q > 0 && q <= INT32_MAX && n < capacity) ids[n++] = q;
        }
        if (whole * (long double)now + (long double)before > (long double)INT32_MAX) break;
        {
            int64_t next = before + (int64_t)whole * now;

            before = now;
            now = next;
        }
        if (now > 0 && n + 1 < capacity) {
            ids[n++] = now;
            ids[n++] = -now;
        }
        if (x - whole < 1e-12L) break;
        x = 1 / (x - whole);
    }
    return n;
}

static void test_zero_crossings(void **state)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 2, 2);
    struct test_random random = {5};
    size_t most = 0;

    (void)state;
    for (int i = 0; i < (test_quick() ? 40 : 400); i++) {
        int64_t ids[200];
        double frequency = i == 0 ? 1.0 : pow(10000.0, -(double)test_bits(&random) * 0x1p-32);
        size_t n = crossings(frequency, ids, 200);

        if (n == 0) continue;
        most = n > most ? n : most;
        params.frequency_source = POSENC_FREQUENCIES_INVERSE;
        params.frequencies = &frequency;
        check_plan(params, ids, n);
    }
    assert_true(most > 20);
}

/* Row(-p) is Row(p) with the sines negated, and row 0 is (1, +0). */
static void test_conjugate(void **state)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 128, 128);
    posenc_plan *plan = test_plan(&params);
    struct test_random random = {6};
    float plus[128], minus[128];

    (void)state;
    for (int i = 0; i < 500; i++) {
        int64_t id = (int64_t)(test_bits(&random) >> (1 + test_below(&random, 30))), negative = -id;

        rows_of(plan, &id, 1, plus);
        rows_of(plan, &negative, 1, minus);
        for (int j = 64; j < 128; j++) minus[j] = id ? -minus[j] : minus[j];
        assert_memory_equal(plus, minus, sizeof plus);
    }
    rows_of(plan, &(int64_t){0}, 1, plus);
    for (int j = 0; j < 64; j++) {
        assert_true(plus[j] == 1.0f);
        assert_true(plus[64 + j] == 0.0f && !signbit(plus[64 + j]));
    }
    posenc_plan_free(plan);
}

/* Every number of pairs 1..129: tails of every vector length, against unreadable pages, at any
 * alignment, in consecutive, repeated and scattered runs. */
static void test_tails(void **state)
{
    static const int64_t ids[] = {13, 14, 15, 16, 17, 17, 17, 16, -1, -2, -16, -17, 1000000,
                                  1000001, 0, INT32_MIN, 5, 37, 36};
    enum { COUNT = sizeof ids / sizeof *ids };
    struct test_guard guard = test_guard_new(COUNT * 260 * sizeof(float));
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (int32_t r = 2; r <= 258; r += 2) {
        size_t size = COUNT * (size_t)r * sizeof(float);
        float *expected = malloc(size);
        posenc_rope_params params = test_params(POSENC_ADJACENT, r, r);

        for (size_t k = 0; k < n; k++) {
            posenc_plan *plan;

            params.isa = isas[k];
            plan = test_plan(&params);
            if (k == 0) {
                rows_of(plan, ids, COUNT, expected);
                check_rows(plan, ids, COUNT, expected);
            }
            for (int place = 0; place < TEST_PLACES; place++) {
                float *memory = test_guard_at(&guard, size, sizeof(float), (enum test_place)place);

                memset(guard.first, 0x5a, guard.capacity);
                rows_of(plan, ids, COUNT, memory);
                if (memcmp(memory, expected, size) != 0) {
                    fail_msg("%s, width %d, place %d", posenc_isa_name(isas[k]), r, place);
                }
                if (place == TEST_ODD) {
                    unsigned char *behind = (unsigned char *)memory + size;

                    assert_int_equal(guard.first[3], 0x5a);
                    assert_int_equal(behind[0], 0x5a);
                }
            }
            posenc_plan_free(plan);
        }
        free(expected);
    }
    test_guard_free(&guard);
}

/* The bits themselves, one hash for every architecture: scalar, AVX2, AVX-512, NEON, big endian. */
static void test_stored_hash(void **state)
{
    static int64_t ids[400];
    static float rows[400 * 128];
    size_t n = some_positions(ids, 300, 7);
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);

    (void)state;
    for (size_t k = 0; k < count; k++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 128, 128);
        posenc_plan *plan;
        uint64_t hash;

        params.base = 500000;
        params.isa = isas[k];
        plan = test_plan(&params);
        rows_of(plan, ids, n, rows);
        posenc_plan_free(plan);
        hash = test_hash(TEST_HASH_START, rows, n * 128, sizeof(float));
        if (hash != UINT64_C(0x0405b9908fa9288e)) {
            fail_msg("%s: 0x%016llx", posenc_isa_name(isas[k]), (unsigned long long)hash);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_attention_factors),
        cmocka_unit_test(test_given_frequencies),
        cmocka_unit_test(test_zero_crossings),
        cmocka_unit_test(test_conjugate),
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_stored_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
