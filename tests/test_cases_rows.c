/* SPDX-License-Identifier: MIT */
/* Cases from public bug reports on precision, positions and scaling: K03, K04, K05, K09, K10, K18,
 * K19. */
#include "support/cases.h"
#include "support/guard.h"
#include "support/half.h"
#include "support/test.h"

#include <stdio.h>

/* Holds a row against "PREFIXcos" and "PREFIXsin"; `pairs` picks, NULL is all. */
static void check_row(const char *id, const char *prefix, const float *row, int half,
                      const double *pairs, size_t n, double tolerance)
{
    float picked[128];
    char name[80];

    for (int part = 0; part < 2; part++) {
        for (size_t i = 0; i < n; i++)
            picked[i] = row[part * half + (pairs ? (int)pairs[i] : (int)i)];
        snprintf(name, sizeof name, "%s%s", prefix, part ? "sin" : "cos");
        case_check(id, name, picked, tolerance);
    }
}

static posenc_plan *plan_of(int32_t width, double base, int32_t isa)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, width, width);

    params.base = base;
    params.isa = isa;
    return test_plan(&params);
}

/* B06-a, b, c: rows whose phase a half or a float cannot hold. */
static void precise_rows(int32_t isa)
{
    static const char *const ids[] = {"B06-b", "B06-c"};
    posenc_plan *plan = plan_of(32, 10000, isa);
    float row[128];
    double pairs[16];

    case_row(plan, 1857, row);
    check_row("B06-a", "expected.", row, 16, NULL, 16, 2e-6);
    posenc_plan_free(plan);
    plan = plan_of(128, 500000, isa);
    for (int i = 0; i < 2; i++) {
        size_t n = test_numbers("cases.txt", ids[i], "parameters.pairs", pairs, 16);

        case_row(plan, (int64_t)case_number(ids[i], "input.position"), row);
        check_row(ids[i], "expected.", row, 64, pairs, n, 2e-6);
    }
    posenc_plan_free(plan);
}

/* B06-e: a row stored as bfloat16 is rounded once, at the end. The recipe hf_f32 rounds the angle
 * to f32 first, so that one unit is allowed where the value lies next to a boundary. */
static void row_as_bfloat16(int32_t isa)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 32, 32);
    double bits[16];
    float row[32], exact[32];
    posenc_plan *plan = plan_of(32, 10000, isa);

    case_row(plan, 1857, exact);
    posenc_plan_free(plan);
    params.isa = isa;
    params.recipe = POSENC_RECIPE_HF_F32;
    params.row_dtype = POSENC_BF16;
    plan = test_plan(&params);
    case_row(plan, 1857, row);
    posenc_plan_free(plan);
    for (int part = 0; part < 2; part++) {
        test_numbers("cases.txt", "B06-e", part ? "expected.sin_bits" : "expected.cos_bits", bits,
                     16);
        for (int i = 0; i < 16; i++) {
            double expected = test_widen((uint16_t)bits[i], POSENC_BF16);
            double got = (double)row[16 * part + i], value = (double)exact[16 * part + i];
            uint16_t narrow = test_narrow(value, POSENC_BF16);

            assert_true(test_widen(test_narrow(got, POSENC_BF16), POSENC_BF16) == got);
            assert_int_equal(narrow, (uint16_t)bits[i]);
            /* At 1857 the f32 angle is off by up to 2^-14: see the case's reference_float32_phase.
             */
            if (got != expected
                && fabs(fabs(value - (got + expected) / 2)) > 0x1p-13) {
                fail_msg("part %d, pair %d: %a instead of %a", part, i, got, expected);
            }
        }
    }
}

/* B07-a: positions from 65536 on stay apart. B08-a: positions near multiples of pi. */
static void long_positions(int32_t isa)
{
    static const char *const ids[] = {"B07-a", "B08-a"};
    static const int widths[] = {8, 2};
    static const double tolerances[] = {2e-6, 2e-7};

    for (int c = 0; c < 2; c++) {
        posenc_plan *plan = plan_of(widths[c], 10000, isa);
        double positions[16];
        size_t n = test_numbers("cases.txt", ids[c], "input.positions", positions, 16);

        assert_true(n >= 4);
        for (size_t i = 0; i < n; i++) {
            float row[8];
            char prefix[64];

            case_row(plan, (int64_t)positions[i], row);
            snprintf(prefix, sizeof prefix, "expected.%.0f.", positions[i]);
            check_row(ids[c], prefix, row, widths[c] / 2, NULL, (size_t)widths[c] / 2,
                      tolerances[c]);
        }
        posenc_plan_free(plan);
    }
}

/* B09-a: a phase has the same bits whatever phases stand beside it. */
static void neighbour_lanes(int32_t isa)
{
    static const char *const batches[] = {"input.batch_1", "input.batch_2", "input.batch_3"};
    float first[2] = {0, 0};

    for (int b = 0; b < 3; b++) {
        posenc_rope_params params;
        posenc_plan *plan;
        double frequencies[64];
        float row[128];
        int n = (int)test_numbers("cases.txt", "B09-a", batches[b], frequencies, 64);

        params = test_params(POSENC_SPLIT_HALF, 2 * n, 2 * n);
        params.isa = isa;
        params.frequency_source = POSENC_FREQUENCIES_INVERSE;
        params.frequencies = frequencies;
        plan = test_plan(&params);
        case_row(plan, 1, row);
        posenc_plan_free(plan);
        assert_true(fabs((double)row[0] - case_number("B09-a", "expected.cos")) < 1.2e-7);
        assert_true(fabs((double)row[n] - case_number("B09-a", "expected.sin")) < 1.2e-7);
        if (b == 0) {
            first[0] = row[0];
            first[1] = row[n];
        }
        assert_memory_equal(&first[0], &row[0], sizeof(float));
        assert_memory_equal(&first[1], &row[n], sizeof(float));
    }
}

/* B10-a: equal lengths at two offsets. B11-a: a sequence fed in pieces, for two layers. */
static void offsets_and_pieces(int32_t isa)
{
    static const int pieces[] = {6, 1, 1, 3};
    posenc_plan *plan = plan_of(4, 10000, isa);
    float rows[11 * 4], piece[11 * 4];
    char prefix[64];
    int64_t at = 0;

    for (int call = 1; call <= 2; call++) {
        posenc_positions positions;
        posenc_tensor view;

        posenc_positions_start(&positions, call == 1 ? 0 : 10);
        posenc_tensor_contiguous(&view, rows, POSENC_F32, 1, 4, 1, 4);
        test_ok(posenc_rows(plan, &positions, &view, NULL), NULL);
        for (int t = 0; t < 4; t++) {
            snprintf(prefix, sizeof prefix, "expected.call_%d.%d.", call, t);
            check_row("B10-a", prefix, rows + 4 * t, 2, NULL, 2, 1e-6);
        }
    }
    for (int n = 0; n < 4; n++) {
        posenc_positions positions;
        posenc_tensor view;

        for (int layer = 0; layer < 2; layer++) {
            posenc_positions_start(&positions, at);
            posenc_tensor_contiguous(&view, piece + 4 * at, POSENC_F32, 1, pieces[n], 1, 4);
            test_ok(posenc_rows(plan, &positions, &view, NULL), NULL);
        }
        at += pieces[n];
    }
    {
        posenc_positions positions;
        posenc_tensor view;

        posenc_positions_start(&positions, 0);
        posenc_tensor_contiguous(&view, rows, POSENC_F32, 1, 11, 1, 4);
        test_ok(posenc_rows(plan, &positions, &view, NULL), NULL);
    }
    assert_memory_equal(rows, piece, sizeof rows);
    check_row("B11-a", "expected.row_for_position_6.", rows + 24, 2, NULL, 2, 1e-6);
    check_row("B11-a", "expected.row_for_position_10.", rows + 40, 2, NULL, 2, 1e-6);
    posenc_plan_free(plan);
}

/* B12-b: there and back. B13-b: a negative position is the inverse. */
static void back_and_negative(int32_t isa)
{
    for (int32_t layout = POSENC_ADJACENT; layout <= POSENC_SPLIT_HALF; layout++) {
        posenc_plan *plan = case_plan(layout, 8, 8, isa);
        posenc_positions positions;
        posenc_tensor view;
        float x[8];

        case_floats("B12-b", "input.x", x, 8);
        posenc_positions_start(&positions, 9);
        posenc_tensor_contiguous(&view, x, POSENC_F32, 1, 1, 1, 8);
        test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &view, NULL, NULL, NULL, NULL), NULL);
        test_ok(posenc_rope(plan, POSENC_INVERSE, &positions, &view, NULL, NULL, NULL, NULL), NULL);
        case_check("B12-b", "expected.x", x, 1e-6);
        if (layout == POSENC_SPLIT_HALF) {
            case_floats("B13-b", "input.x", x, 8);
            case_rope(plan, x, 1, 1, 1, -2);
            case_check("B13-b", "expected", x, 2e-6);
        }
        posenc_plan_free(plan);
    }
}

/* B13-a: left padding, a position row per batch row; real tokens get 0, 1, 2, ... */
static void padded_batch(int32_t isa)
{
    static const int32_t ids[2][5] = {{-1, -1, 0, 1, 2}, {0, 1, 2, 3, 4}};
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 8, 8, isa);
    posenc_positions positions;
    posenc_tensor view;
    float rows[2][5][8], alone[8];

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I32;
    positions.ids = ids;
    positions.stride[0] = 5;
    positions.stride[1] = 1;
    posenc_tensor_contiguous(&view, rows, POSENC_F32, 2, 5, 1, 8);
    test_ok(posenc_rows(plan, &positions, &view, NULL), NULL);
    for (int b = 0; b < 2; b++) {
        double real[5];
        char name[64];
        size_t n;

        snprintf(name, sizeof name, "expected.positions_of_real_tokens.%d", b);
        n = test_numbers("cases.txt", "B13-a", name, real, 5);
        for (size_t i = 0; i < n; i++) {
            case_row(plan, (int64_t)real[i], alone);
            assert_memory_equal(alone, rows[b][5 - n + i], sizeof alone);
        }
    }
    posenc_plan_free(plan);
}

/* B14-a, B15-b: ids outside a table are refused and nothing is written; the table's last row is the
 * last before an unreadable page. */
static void table_bounds(int32_t isa)
{
    static const struct { int64_t ids[2]; int count, ok; int64_t bad; } tries[] = {
        {{0, 7}, 2, 1, 0}, {{0, 8}, 2, 0, 8}, {{-1, 0}, 2, 0, -1}, {{INT32_MAX}, 1, 0, INT32_MAX},
        {{INT32_MIN}, 1, 0, INT32_MIN}, {{4096}, 1, 0, 4096}};
    struct test_guard guards[2] = {test_guard_new(4096), test_guard_new(4096)};

    for (size_t n = 0; n < 2 * sizeof tries / sizeof *tries; n++) {
        size_t t = n / 2;
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 4, 4);
        enum test_place place = n % 2 ? TEST_AT_START : TEST_AT_END;
        float *cosine = test_guard_at(&guards[0], 64, 4, place);
        float *sine = test_guard_at(&guards[1], 64, 4, place);
        float rows[8], x[8], before[8];
        posenc_error error = {0, ""};
        posenc_positions positions;
        posenc_tensor row_view, x_view;
        posenc_plan *plan;
        int32_t status;
        char bad[32];

        for (int i = 0; i < 16; i++) {
            cosine[i] = (float)i;
            sine[i] = (float)-i;
        }
        params.isa = isa;
        params.cos_table = cosine;
        params.sin_table = sine;
        params.cos_rows = params.sin_rows = 8;
        plan = test_plan(&params);
        for (int i = 0; i < 8; i++) rows[i] = x[i] = before[i] = 0.5f;
        posenc_positions_start(&positions, 0);
        positions.kind = POSENC_POSITIONS_IDS;
        positions.dtype = POSENC_I64;
        positions.ids = tries[t].ids;
        positions.stride[1] = 1;
        posenc_tensor_contiguous(&row_view, rows, POSENC_F32, 1, tries[t].count, 1, 4);
        posenc_tensor_contiguous(&x_view, x, POSENC_F32, 1, tries[t].count, 1, 4);
        status = posenc_rows(plan, &positions, &row_view, &error);
        snprintf(bad, sizeof bad, "%lld", (long long)tries[t].bad);
        if (tries[t].ok) {
            const float expected[8] = {0, 1, 0, -1, 14, 15, -14, -15};

            test_ok(status, &error);
            for (int i = 0; i < 8; i++) assert_true(rows[i] == expected[i]);
            test_ok(posenc_rope(plan, 0, &positions, &x_view, NULL, NULL, NULL, &error), &error);
            assert_true(x[4] == 0.5f * 14 + 0.5f * 14);
        } else {
            test_refused(status, POSENC_ERROR_POSITION, &error, bad);
            assert_memory_equal(rows, before, sizeof rows);
            status = posenc_rope(plan, 0, &positions, &x_view, NULL, NULL, NULL, &error);
            test_refused(status, POSENC_ERROR_POSITION, &error, bad);
            assert_memory_equal(x, before, sizeof x);
        }
        posenc_plan_free(plan);
    }
    test_guard_free(&guards[0]);
    test_guard_free(&guards[1]);
}

/* B14-b: 32-bit and 64-bit ids. */
static void id_widths(int32_t isa)
{
    static const int32_t narrow[] = {1, 2, 3, 4};
    static const int64_t wide[] = {1, 2, 3, 4};
    posenc_plan *plan = plan_of(4, 10000, isa);
    float rows[2][4][4];

    for (int w = 0; w < 2; w++) {
        posenc_positions positions;
        posenc_tensor view;

        posenc_positions_start(&positions, 0);
        positions.kind = POSENC_POSITIONS_IDS;
        positions.dtype = w ? POSENC_I64 : POSENC_I32;
        positions.ids = w ? (const void *)wide : narrow;
        positions.stride[1] = 1;
        posenc_tensor_contiguous(&view, rows[w], POSENC_F32, 1, 4, 1, 4);
        test_ok(posenc_rows(plan, &positions, &view, NULL), NULL);
        check_row("B14-b", "expected.row_for_2.", rows[w][1], 2, NULL, 2, 1e-6);
    }
    assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
    posenc_plan_free(plan);
}

/* B25, B28-a: frequencies; B29-b: one model's two kinds of layers. */
static void scalings(int32_t isa)
{
    static const char *const yarn[] = {"B25-a", "B25-b", "B25-d"};
    posenc_rope_params params;
    posenc_plan *plan;
    double expected[64], made[64];
    float row[256];

    for (int c = 0; c < 4; c++) {
        const char *id = c < 3 ? yarn[c] : "B28-a";
        size_t n = test_numbers("cases.txt", id, "expected.inv_freq", expected, 64);

        params = test_params(POSENC_SPLIT_HALF, (int32_t)(2 * n), (int32_t)(2 * n));
        params.isa = isa;
        params.base = case_number(id, "parameters.base");
        params.factor = case_number(id, "parameters.factor");
        params.original_max_position = case_number(id, "parameters.original_max_position");
        params.scaling = c < 3 ? POSENC_SCALING_YARN : POSENC_SCALING_LLAMA3;
        if (c < 3) params.truncate = (int32_t)case_number(id, "parameters.truncate");
        if (c == 3) {
            params.low_freq_factor = case_number(id, "parameters.low_freq_factor");
            params.high_freq_factor = case_number(id, "parameters.high_freq_factor");
        }
        plan = test_plan(&params);
        test_ok(posenc_plan_inv_freq(plan, made, n, NULL), NULL);
        for (size_t i = 0; i < n; i++) {
            if (fabs(made[i] - expected[i]) > 1e-14 * expected[i]) {
                fail_msg("%s pair %zu: %.17g instead of %.17g", id, i, made[i], expected[i]);
            }
        }
        posenc_plan_free(plan);
    }
    for (int c = 0; c < 2; c++) {
        params = test_params(POSENC_SPLIT_HALF, 256, 256);
        params.isa = isa;
        params.base = c ? 10000 : 1000000;
        if (c == 0) {
            params.scaling = POSENC_SCALING_LINEAR;
            params.factor = 8;
        }
        plan = test_plan(&params);
        case_row(plan, 100, row);
        check_row("B29-b", c ? "expected.sliding." : "expected.full.", row, 128, NULL, 1, 1e-6);
        posenc_plan_free(plan);
    }
}

/* B26-a: the magnitude on cosine and sine. */
static void yarn_magnitudes(int32_t isa)
{
    static const double tries[][4] = {
        {64, 0, 0, 0}, {64, 1, 0, 0}, {16, 0, 1, 1}, {40, 0, 1, 0.707},
        {40, 0, 0.707, 0.707}, {40, 0, 1, 1}, {1, 0, 0, 0}, {32, 1.5, 1, 0.5}};

    for (int t = 0; t < 8; t++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 64, 64);
        double expected;
        posenc_plan *plan;
        float row[64];
        char name[64];

        params.isa = isa;
        params.scaling = POSENC_SCALING_YARN;
        params.original_max_position = 4096;
        params.factor = tries[t][0];
        params.attention_factor = tries[t][1];
        params.mscale = tries[t][2];
        params.mscale_all_dim = tries[t][3];
        plan = test_plan(&params);
        snprintf(name, sizeof name, "expected.%d.magnitude", t);
        expected = case_number("B26-a", name);
        assert_true(fabs(posenc_plan_attention_factor(plan) - expected) < 1e-14 * expected);
        case_row(plan, 0, row);
        assert_true(row[0] == (float)posenc_plan_attention_factor(plan));
        posenc_plan_free(plan);
    }
}

/* B50-c: with more queries than keys the first query sees no key: a row of zeros. */
static void no_visible_key(int32_t isa)
{
    posenc_attention_params params;
    posenc_tensor q, k, v, out;
    float queries[3 * 2] = {1, 0, 1, 0, 1, 0}, keys[2 * 2] = {1, 0, 0, 1};
    float values[2 * 2] = {1, 2, 3, 4}, result[3 * 2] = {9, 9, 9, 9, 9, 9};

    posenc_attention_params_init(&params);
    params.causal = 1;
    params.isa = isa;
    posenc_tensor_contiguous(&q, queries, POSENC_F32, 1, 3, 1, 2);
    posenc_tensor_contiguous(&k, keys, POSENC_F32, 1, 2, 1, 2);
    posenc_tensor_contiguous(&v, values, POSENC_F32, 1, 2, 1, 2);
    posenc_tensor_contiguous(&out, result, POSENC_F32, 1, 3, 1, 2);
    test_ok(posenc_attention(&params, &q, &k, &v, &out, NULL), NULL);
    assert_true(result[0] == 0 && result[1] == 0);
    assert_true(result[2] == 1 && result[3] == 2);
    assert_true(result[4] > 1 && result[4] < 2 && fabs((double)(result[5] - result[4]) - 1) < 1e-6);
}

#define CASE(name) static void test_##name(void **state) { (void)state; case_each_isa(name); }
CASE(precise_rows)
CASE(row_as_bfloat16)
CASE(long_positions)
CASE(neighbour_lanes)
CASE(offsets_and_pieces)
CASE(back_and_negative)
CASE(padded_batch)
CASE(table_bounds)
CASE(id_widths)
CASE(scalings)
CASE(yarn_magnitudes)
CASE(no_visible_key)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precise_rows),
        cmocka_unit_test(test_row_as_bfloat16),
        cmocka_unit_test(test_long_positions),
        cmocka_unit_test(test_neighbour_lanes),
        cmocka_unit_test(test_offsets_and_pieces),
        cmocka_unit_test(test_back_and_negative),
        cmocka_unit_test(test_padded_batch),
        cmocka_unit_test(test_table_bounds),
        cmocka_unit_test(test_id_widths),
        cmocka_unit_test(test_scalings),
        cmocka_unit_test(test_yarn_magnitudes),
        cmocka_unit_test(test_no_visible_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
