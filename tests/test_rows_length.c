/* SPDX-License-Identifier: MIT */
/* Rows that depend on the running length: each has the bits of a plan that fixes it. */
#include "support/random.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>

enum { BATCH = 5, TOKENS = 70, MOST = 540 };

static const int64_t L0 = 2048;
static double short_factors[MOST / 2], long_factors[MOST / 2];

static posenc_rope_params params_of(int32_t scaling, int32_t r)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, r, r);

    params.scaling = scaling;
    params.factor = 4;
    params.original_max_position = (double)L0;
    if (scaling == POSENC_SCALING_LONGROPE) {
        for (int i = 0; i < MOST / 2; i++) {
            short_factors[i] = 1 + 0.01 * i;
            long_factors[i] = 1.5 + 0.4 * i;
        }
        params.short_factors = short_factors;
        params.long_factors = long_factors;
        params.short_attention = 1.1;
        params.long_attention = 1.3;
    }
    return params;
}

static void rows_of(const posenc_plan *plan, const posenc_positions *positions, int64_t batch,
                    int32_t dtype, void *out)
{
    posenc_error error = {0, ""};
    posenc_tensor rows;

    posenc_tensor_contiguous(&rows, out, dtype, batch, TOKENS, 1,
                             2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, positions, &rows, &error), &error);
}

/* Batch rows of different lengths in one call. */
static const int64_t lengths[BATCH] = {2049, 1, 2048, 100000, 2049};

static void check_batch(posenc_rope_params params, const posenc_positions *positions, int32_t dtype)
{
    static double together[BATCH * TOKENS * MOST], alone[TOKENS * MOST], other[TOKENS * MOST];
    size_t row = TOKENS * (size_t)params.rotary_dim * (dtype == POSENC_F64 ? 8 : 4);
    posenc_plan *plan = test_plan(&params);
    posenc_positions given = *positions;
    int differing = 0;

    given.length = 7; /* the list goes before it */
    given.lengths = lengths;
    rows_of(plan, &given, BATCH, dtype, together);
    for (int b = 0; b < BATCH; b++) {
        posenc_plan *fixed;

        params.length = lengths[b];
        fixed = test_plan(&params);
        rows_of(fixed, positions, 1, dtype, alone);
        assert_memory_equal((char *)together + (size_t)b * row, alone, row);
        given.lengths = NULL;
        given.length = lengths[b];
        rows_of(plan, &given, 1, dtype, other);
        assert_memory_equal(other, alone, row);
        differing += memcmp(together, alone, row) != 0;
        posenc_plan_free(fixed);
    }
    assert_true(differing >= 2);
    posenc_plan_free(plan);
}

static posenc_positions some_positions(int real)
{
    static double real_ids[TOKENS];
    static int64_t ids[TOKENS];
    struct test_random random = {41};
    posenc_positions positions;

    for (int t = 0; t < TOKENS; t++) {
        ids[t] = t < 30 ? 2000 + t : (int64_t)(int32_t)test_bits(&random) >> (t % 31);
        real_ids[t] = (double)ids[t] + (t % 4 == 1 && ids[t] < INT32_MAX ? 0.125 : 0);
    }
    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = real ? POSENC_F64 : POSENC_I64;
    positions.ids = real ? (const void *)real_ids : (const void *)ids;
    positions.stride[1] = 1;
    return positions;
}

static void test_batches(void **state)
{
    static const int32_t widths[] = {4, 34, 64, MOST};
    static const int32_t scalings[] = {POSENC_SCALING_DYNAMIC_NTK, POSENC_SCALING_LONGROPE};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (size_t k = 0; k < n; k++)
        for (int w = 0; w < 4; w++)
            for (int s = 0; s < 2; s++) {
                posenc_rope_params params = params_of(scalings[s], widths[w]);
                posenc_positions whole = some_positions(0), real = some_positions(1), start;

                posenc_positions_start(&start, 2040);
                params.isa = isas[k];
                check_batch(params, &whole, POSENC_F32);
                check_batch(params, &real, POSENC_F32);
                check_batch(params, &real, POSENC_F64);
                check_batch(params, &start, POSENC_F32);
                params.recipe = POSENC_RECIPE_HF_F32;
                check_batch(params, &whole, POSENC_F32);
            }
}

/* Several axes at once: each pair as the fixed plan has it. */
static void test_axes(void **state)
{
    static int64_t ids[2][TOKENS];
    static float made[TOKENS * 64], expected[TOKENS * 64];
    static int32_t axis_of_pair[32];
    posenc_rope_params params = params_of(POSENC_SCALING_DYNAMIC_NTK, 64);
    posenc_positions positions = some_positions(0);
    posenc_plan *plan, *fixed;

    (void)state;
    for (int i = 0; i < 32; i++) axis_of_pair[i] = i / 2 % 2;
    for (int t = 0; t < TOKENS; t++) ids[0][t] = 3 * t, ids[1][t] = 500 - t;
    params.axes = 2;
    params.axis_of_pair = axis_of_pair;
    positions.ids = ids;
    positions.axes = 2;
    positions.axis_stride = TOKENS;
    positions.length = 5000;
    plan = test_plan(&params);
    params.length = 5000;
    fixed = test_plan(&params);
    rows_of(plan, &positions, 1, POSENC_F32, made);
    rows_of(fixed, &positions, 1, POSENC_F32, expected);
    assert_memory_equal(made, expected, sizeof made);
    for (int t = 0; t < TOKENS; t++) { /* a token's axes may need steps of their own */
        posenc_error error = {0, ""};
        posenc_tensor row;
        float one[64];

        positions.ids = &ids[0][t];
        posenc_tensor_contiguous(&row, one, POSENC_F32, 1, 1, 1, 64);
        test_ok(posenc_rows(plan, &positions, &row, &error), &error);
        assert_memory_equal(one, expected + t * 64, sizeof one);
    }
    posenc_plan_free(plan);
    posenc_plan_free(fixed);
}

/* One token at a time has the bits of all at once: blocks are then filled for few steps alone. */
static void test_one_by_one(void **state)
{
    static float all[TOKENS * 64], one[64];
    posenc_rope_params params = params_of(POSENC_SCALING_DYNAMIC_NTK, 64);
    posenc_plan *plan = test_plan(&params);
    posenc_positions positions;
    posenc_error error = {0, ""};
    posenc_tensor row;

    (void)state;
    posenc_positions_start(&positions, -9);
    positions.length = 9999;
    rows_of(plan, &positions, 1, POSENC_F32, all);
    posenc_tensor_contiguous(&row, one, POSENC_F32, 1, 1, 1, 64);
    for (int t = 0; t < TOKENS; t++) {
        positions.start = t - 9;
        test_ok(posenc_rows(plan, &positions, &row, &error), &error);
        assert_memory_equal(one, all + t * 64, sizeof one);
    }
    posenc_plan_free(plan);
}

/* Fused and in steps; INVERSE where no factor depends on the length. */
static void check_fused(int32_t scaling)
{
    enum { R = 64, HEADS = 2, COUNT = BATCH * TOKENS * HEADS * R };
    static float before[COUNT], steps[COUNT], fused[COUNT], memory[BATCH * TOKENS * R];
    posenc_rope_params params = params_of(scaling, R);
    posenc_positions positions;
    posenc_error error = {0, ""};
    posenc_plan *plan = test_plan(&params);
    struct test_random random = {6};
    posenc_tensor rows, q;

    for (int i = 0; i < COUNT; i++) before[i] = test_unit(&random);
    memcpy(steps, before, sizeof before);
    memcpy(fused, before, sizeof before);
    posenc_positions_start(&positions, 2000);
    positions.lengths = lengths;
    posenc_tensor_contiguous(&rows, memory, POSENC_F32, BATCH, TOKENS, 1, R);
    posenc_tensor_contiguous(&q, steps, POSENC_F32, BATCH, TOKENS, HEADS, R);
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
    test_ok(posenc_rotate(plan, POSENC_FORWARD, &rows, &q, NULL, NULL, NULL, &error), &error);
    q.data = fused;
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &q, NULL, NULL, NULL, &error), &error);
    assert_memory_equal(steps, fused, sizeof fused);
    if (scaling == POSENC_SCALING_LONGROPE) { /* rows do not tell which factor they carry */
        memcpy(fused, before, sizeof before);
        test_refused(posenc_rotate(plan, POSENC_INVERSE, &rows, &q, NULL, NULL, NULL, &error),
                     POSENC_ERROR_ARGUMENT, &error, "INVERSE|1.1|1.3|length");
        assert_memory_equal(fused, before, sizeof before);
        test_ok(posenc_rotate(plan, POSENC_TRANSPOSE, &rows, &q, NULL, NULL, NULL, &error), &error);
        posenc_plan_free(plan);
        return;
    }
    test_ok(posenc_rope(plan, POSENC_INVERSE, &positions, &q, NULL, NULL, NULL, &error), &error);
    for (int i = 0; i < COUNT; i++) {
        if (!(fabsf(fused[i] - before[i]) <= 4e-6f)) {
            fail_msg("value %d: %g instead of %g", i, (double)fused[i], (double)before[i]);
        }
    }
    posenc_plan_free(plan);
}

static void test_fused(void **state)
{
    (void)state;
    check_fused(POSENC_SCALING_DYNAMIC_NTK);
    check_fused(POSENC_SCALING_LONGROPE);
}

/* A decay has no inverse that INVERSE could know: TRANSPOSE of the other side's rows undoes it. */
static void test_xpos_inverse(void **state)
{
    enum { R = 32, N = 9 };
    float x[N * R], before[N * R];
    posenc_rope_params params = test_params(POSENC_ADJACENT, R, R);
    struct test_random random = {8};
    posenc_plan *queries, *keys;
    posenc_positions positions;
    posenc_error error = {0, ""};
    posenc_tensor q;

    (void)state;
    params.xpos = POSENC_XPOS_QUERIES;
    queries = test_plan(&params);
    params.xpos = POSENC_XPOS_KEYS;
    keys = test_plan(&params);
    for (int i = 0; i < N * R; i++) before[i] = x[i] = test_unit(&random);
    posenc_positions_start(&positions, 100);
    posenc_tensor_contiguous(&q, x, POSENC_F32, 1, N, 1, R);
    test_refused(posenc_rope(queries, POSENC_INVERSE, &positions, &q, NULL, NULL, NULL, &error),
                 POSENC_ERROR_ARGUMENT, &error, "INVERSE|xpos|TRANSPOSE");
    assert_memory_equal(x, before, sizeof x);
    test_ok(posenc_rope(queries, POSENC_FORWARD, &positions, &q, NULL, NULL, NULL, &error), &error);
    test_ok(posenc_rope(keys, POSENC_TRANSPOSE, &positions, &q, NULL, NULL, NULL, &error), &error);
    for (int i = 0; i < N * R; i++) assert_true(fabsf(x[i] - before[i]) <= 2e-6f);
    posenc_plan_free(queries);
    posenc_plan_free(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),    cmocka_unit_test(test_axes),
        cmocka_unit_test(test_one_by_one), cmocka_unit_test(test_fused),
        cmocka_unit_test(test_xpos_inverse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
