/* SPDX-License-Identifier: MIT */
/* Rows from the caller's angles: within the bounds of other rows, every argument checked. */
#include "support/random.h"
#include "support/test.h"
#include "support/truth.h"

#include <math.h>

enum { BATCH = 2, TOKENS = 150, PAIRS = 5, COUNT = BATCH * TOKENS * PAIRS };

static double angles[COUNT];
static float angles_f32[COUNT];

static void make_angles(uint32_t seed)
{
    static const double special[] = {0,     -0.0,   1e-9,    -1e-300, 0x1p-26, 0x1.8p-27, 0x1p-13,
                                     0.125, 1.5707963267948966, -3.141592653589793, 1e6, -1e20,
                                     0x1.fffffep75, -0x1.fffffep75, 0x1p-149, 6.283185307179586};
    struct test_random random = {seed};

    for (int i = 0; i < COUNT; i++) {
        double mantissa = (double)(int32_t)test_bits(&random);

        mantissa += (double)test_bits(&random) * 0x1p-32;
        angles[i] = i < 16 ? special[i] : ldexp(mantissa, (int)test_below(&random, 60) - 60);
        angles_f32[i] = (float)angles[i];
    }
}

static posenc_plan *plan_of(double factor)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 2 * PAIRS, 2 * PAIRS);

    params.attention_factor = factor;
    return test_plan(&params);
}

/* Angles as a strided view into the array, rows with a gap behind each token. */
static void views(posenc_tensor *in, int32_t in_dtype, posenc_tensor *out, void *data,
                  int32_t out_dtype)
{
    posenc_tensor_contiguous(in, in_dtype == POSENC_F64 ? (void *)angles : (void *)angles_f32,
                             in_dtype, BATCH, TOKENS, 1, PAIRS);
    in->stride[0] = PAIRS; /* [token][batch][pair] */
    in->stride[1] = BATCH * PAIRS;
    posenc_tensor_contiguous(out, data, out_dtype, BATCH, TOKENS, 1, 2 * PAIRS);
    out->stride[1] = 2 * PAIRS + 1;
    out->stride[0] = TOKENS * (2 * PAIRS + 1);
}

static void check(double factor, int32_t in_dtype, int32_t out_dtype)
{
    static double memory[BATCH * TOKENS * (2 * PAIRS + 1)];
    long double bound = test_row_bound(factor);
    posenc_plan *plan = plan_of(factor);
    posenc_error error = {0, ""};
    posenc_tensor in, out;

    if (out_dtype == POSENC_F64) bound *= 0x1p-29L * 0.51L / 0.501L;
    memset(memory, 0x5a, sizeof memory);
    views(&in, in_dtype, &out, memory, out_dtype);
    test_ok(posenc_rows_from_angles(plan, &in, &out, &error), &error);
    for (int n = 0; n < COUNT; n++) {
        int i = n % PAIRS, b = n / PAIRS % BATCH, t = n / PAIRS / BATCH;
        int at = (b * TOKENS + t) * (2 * PAIRS + 1) + i;
        double angle = in_dtype == POSENC_F64 ? angles[n] : (double)angles_f32[n];
        long double c, s, got_c, got_s;

        got_c = out_dtype == POSENC_F64 ? (long double)memory[at]
                                        : (long double)((const float *)memory)[at];
        got_s = out_dtype == POSENC_F64 ? (long double)memory[at + PAIRS]
                                        : (long double)((const float *)memory)[at + PAIRS];
        test_cos_sin_real(1, angle, &c, &s);
        c *= (long double)factor;
        s *= (long double)factor;
        if (!(fabsl(got_c - c) <= bound && fabsl(got_s - s) <= bound)) {
            fail_msg("angle %a: (%La, %La) instead of (%La, %La)", angle, got_c, got_s, c, s);
        }
        if (i == 0 && b + t > 0) { /* the gap before this token */
            const unsigned char *gap = (const unsigned char *)memory;

            assert_int_equal(gap[(size_t)(at - 1) * (out_dtype == POSENC_F64 ? 8 : 4)], 0x5a);
        }
    }
    posenc_plan_free(plan);
}

static void test_bounds(void **state)
{
    static const double factors[] = {1, 0.8, 1.25, 3.7};

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        make_angles(i);
        check(factors[i], POSENC_F32, POSENC_F32);
        check(factors[i], POSENC_F32, POSENC_F64);
        check(factors[i], POSENC_F64, POSENC_F32);
        check(factors[i], POSENC_F64, POSENC_F64);
    }
}

/* To the last bit, where the bound of a row would allow 0. */
static void test_small_angles_are_their_sines(void **state)
{
    static double small[PAIRS] = {1e-9, -1e-300, 0x1.8p-28, -0x1p-149, 0x1p-1022};
    double wide[2 * PAIRS];
    float narrow[2 * PAIRS];
    posenc_plan *plan = plan_of(1);
    posenc_tensor in, out;
    posenc_error error = {0, ""};

    (void)state;
    posenc_tensor_contiguous(&in, small, POSENC_F64, 1, 1, 1, PAIRS);
    posenc_tensor_contiguous(&out, wide, POSENC_F64, 1, 1, 1, 2 * PAIRS);
    test_ok(posenc_rows_from_angles(plan, &in, &out, &error), &error);
    posenc_tensor_contiguous(&out, narrow, POSENC_F32, 1, 1, 1, 2 * PAIRS);
    test_ok(posenc_rows_from_angles(plan, &in, &out, &error), &error);
    for (int i = 0; i < PAIRS; i++) {
        assert_true(wide[i] == 1 && wide[PAIRS + i] == small[i]);
        assert_true(narrow[i] == 1 && narrow[PAIRS + i] == (float)small[i]);
    }
    posenc_plan_free(plan);
}

/* A right call, from which a test departs. */
struct call { posenc_plan *plan; posenc_tensor in, out; };

static float written[BATCH * TOKENS * (2 * PAIRS + 1)];

static struct call fresh(posenc_plan *plan)
{
    struct call call = {.plan = plan};

    views(&call.in, POSENC_F64, &call.out, written, POSENC_F32);
    return call;
}

static void refuse(const struct call *call, int32_t expected, const char *words)
{
    static float before[sizeof written / sizeof *written];
    posenc_error error = {0, ""};

    memcpy(before, written, sizeof written);
    test_refused(posenc_rows_from_angles(call->plan, &call->in, &call->out, &error), expected,
                 &error, words);
    assert_memory_equal(written, before, sizeof written);
}

static void test_refusals(void **state)
{
    static const double wrong[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0x1p76,
                                   -1e300};
    posenc_plan *plan = plan_of(1);
    struct call call = fresh(plan);
    posenc_error error = {0, ""};
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 2 * PAIRS, 2 * PAIRS);

    (void)state;
    make_angles(9);
    test_ok(posenc_rows_from_angles(plan, &call.in, &call.out, &error), &error);
    for (int i = 0; i < 5; i++) {
        double kept = angles[COUNT - 1];

        angles[COUNT - 1] = wrong[i];
        refuse(&call, POSENC_ERROR_ARGUMENT, "angles|batch row 1, token 149, pair 4|2^76");
        angles[COUNT - 1] = kept;
    }
    call.plan = NULL;
    refuse(&call, POSENC_ERROR_ARGUMENT, "plan|NULL");
    call = fresh(plan), call.in.data = NULL;
    refuse(&call, POSENC_ERROR_ARGUMENT, "angles.data|NULL");
    call = fresh(plan), call.in.dtype = POSENC_F16;
    refuse(&call, POSENC_ERROR_ARGUMENT, "angles.dtype|2|F64");
    call = fresh(plan), call.out.dtype = POSENC_BF16;
    refuse(&call, POSENC_ERROR_ARGUMENT, "rows.dtype|3|F64");
    call = fresh(plan), call.in.shape[3] = PAIRS - 1;
    refuse(&call, POSENC_ERROR_ARGUMENT, "angles.shape|4|5");
    call = fresh(plan), call.out.shape[3] = 2 * PAIRS - 2;
    refuse(&call, POSENC_ERROR_ARGUMENT, "rows.shape|8|10");
    call = fresh(plan), call.out.shape[1] = TOKENS - 1;
    refuse(&call, POSENC_ERROR_ARGUMENT, "rows.shape|149|150");
    call = fresh(plan), call.in.shape[0] = 1;
    refuse(&call, POSENC_ERROR_ARGUMENT, "rows.shape|[2, 150");
    call = fresh(plan), call.out.stride[1] = 0;
    refuse(&call, POSENC_ERROR_OVERLAP, "rows");
    call = fresh(plan), call.in.data = written, call.in.dtype = POSENC_F32;
    refuse(&call, POSENC_ERROR_OVERLAP, "rows|angles");
    test_refused(posenc_rows_from_angles(plan, NULL, &call.out, &error), POSENC_ERROR_ARGUMENT,
                 &error, "angles is NULL");
    test_refused(posenc_rows_from_angles(plan, &call.in, NULL, &error), POSENC_ERROR_ARGUMENT,
                 &error, "rows is NULL");
    params.xpos = POSENC_XPOS_KEYS;
    call = fresh(test_plan(&params));
    refuse(&call, POSENC_ERROR_ARGUMENT, "xpos|-1");
    posenc_plan_free(call.plan);
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_small_angles_are_their_sines),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
