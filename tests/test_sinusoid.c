/* SPDX-License-Identifier: MIT */
/* Sinusoids against 50 digits, against what transformers and diffusers computed, and by algebra. */
#include "sinusoid_call.h"
#include "support/cases.h"
#include "support/numbers.h"

#include <stdio.h>

enum { MOST = 1024, GOLDEN_FORMS = 20 };

/* Within 0.501 x 2^-24 (2^-53 for F64) of position x stored frequency, which is half an ulp off. */
static void check_row(const char *id, const posenc_sinusoid *sinusoid, double position,
                      double scale, const double *expected, int64_t dim)
{
    float narrow[MOST];
    double wide[MOST];

    sinusoid_real(sinusoid, &position, 1, dim, POSENC_F32, narrow);
    sinusoid_real(sinusoid, &position, 1, dim, POSENC_F64, wide);
    for (int64_t i = 0; i < dim; i++) {
        double phase = 0x1p-53 * fabs(position) * scale;

        if (fabs((double)narrow[i] - expected[i]) > 0.501 * 0x1p-24 + phase ||
            fabs(wide[i] - expected[i]) > 0x1p-53 + phase)
            fail_msg("%s, position %g, channel %d: %.9g and %.17g instead of %.17g", id, position,
                     (int)i, (double)narrow[i], wide[i], expected[i]);
    }
}

static posenc_sinusoid_params golden_params(const char *id, int32_t dim)
{
    posenc_sinusoid_params params = sinusoid_params(dim, POSENC_SINUSOID_HALVES);
    double value;

    if (!strncmp(id, "interleaved", 11)) params.arrangement = POSENC_SINUSOID_INTERLEAVED;
    params.exponent_by_width =
        !strncmp(id, "interleaved", 11) || !strncmp(id, "halves_vaswani", 14);
    params.odd = params.exponent_by_width ? POSENC_ODD_SINE : POSENC_ODD_ZERO;
    params.shift = !params.exponent_by_width;
    if (!strncmp(id, "timestep", 8)) {
        test_numbers("golden_sinusoids.txt", id, "flip_sin_to_cos", &value, 1);
        params.cosine_first = (int32_t)value;
        test_numbers("golden_sinusoids.txt", id, "downscale_freq_shift", &params.shift, 1);
        test_numbers("golden_sinusoids.txt", id, "scale", &params.scale, 1);
        test_numbers("golden_sinusoids.txt", id, "max_period", &params.base, 1);
    }
    return params;
}

static void test_golden(void **state)
{
    char id[64];
    size_t n = 0;

    (void)state;
    for (; test_number_id("golden_sinusoids.txt", "dim", n, id, sizeof id); n++) {
        double dim, positions[16], expected[MOST];

        test_numbers("golden_sinusoids.txt", id, "dim", &dim, 1);
        size_t count = test_numbers("golden_sinusoids.txt", id, "positions", positions, 16);
        posenc_sinusoid_params params = golden_params(id, (int32_t)dim);
        posenc_sinusoid *sinusoid = sinusoid_new(&params);

        for (size_t i = 0; i < count; i++) {
            char name[32];

            snprintf(name, sizeof name, "row.%g", positions[i]);
            assert_int_equal(test_numbers("golden_sinusoids.txt", id, name, expected, MOST),
                             (size_t)dim);
            check_row(id, sinusoid, positions[i], params.scale, expected, (int64_t)dim);
        }
        posenc_sinusoid_free(sinusoid);
    }
    assert_int_equal(n, GOLDEN_FORMS);
}

static void check_case(const char *id, const char *name, const posenc_sinusoid_params *params)
{
    posenc_sinusoid *sinusoid = sinusoid_new(params);
    double expected[16];

    assert_int_equal(test_numbers("cases.txt", id, name, expected, 16), params->dim);
    check_row(id, sinusoid, case_number(id, "input.position"), 1, expected, params->dim);
    posenc_sinusoid_free(sinusoid);
}

static void test_public_forms(void **state)
{
    posenc_sinusoid_params p = sinusoid_params(8, POSENC_SINUSOID_INTERLEAVED);

    (void)state;
    check_case("B36-a", "expected.alternating_sin,cos_(denominator_width)", &p);
    p.arrangement = POSENC_SINUSOID_HALVES;
    check_case("B36-a", "expected.sines_then_cosines,_shift_0", &p);
    p.cosine_first = 1;
    check_case("B36-a", "expected.cosines_then_sines,_shift_0", &p);
    p.cosine_first = 0;
    p.shift = 1;
    check_case("B36-a", "expected.sines_then_cosines,_shift_1_(speech_encoder_form)", &p);
    p = sinusoid_params(5, POSENC_SINUSOID_INTERLEAVED);
    p.odd = POSENC_ODD_SINE;
    p.exponent_by_width = 1;
    check_case("B36-b", "expected.alternating", &p);
    p = sinusoid_params(5, POSENC_SINUSOID_HALVES);
    p.odd = POSENC_ODD_ZERO;
    p.shift = 0;
    check_case("B36-b", "expected.sines_then_cosines,_zero_at_the_end", &p);
}

/* Values of a package in float32, whose angles are rounded: off by some ulps of the angle. */
static void check_run(const char *id, const float *got, size_t count, double tolerance)
{
    static double expected[MOST];

    assert_int_equal(test_numbers("absolute_run.txt", id, "rows", expected, MOST), count);
    for (size_t i = 0; i < count; i++)
        if (fabs((double)got[i] - expected[i]) > tolerance)
            fail_msg("%s, value %zu: %.9g instead of %.9g", id, i, (double)got[i], expected[i]);
}

static void test_diffusers_steps(void **state)
{
    char id[64];
    size_t n = 0;

    (void)state;
    for (; test_number_id("absolute_run.txt", "form", n, id, sizeof id); n++) {
        double form[4], steps[8];
        float rows[MOST];

        test_numbers("absolute_run.txt", id, "form", form, 4);
        size_t count = test_numbers("absolute_run.txt", id, "steps", steps, 8);
        posenc_sinusoid_params p = sinusoid_params((int32_t)form[0], POSENC_SINUSOID_HALVES);

        p.cosine_first = (int32_t)form[1];
        p.shift = form[2];
        p.scale = form[3];
        p.odd = POSENC_ODD_ZERO;
        posenc_sinusoid *sinusoid = sinusoid_new(&p);

        sinusoid_real(sinusoid, steps, (int64_t)count, p.dim, POSENC_F32, rows);
        check_run(id, rows, count * (size_t)p.dim, 2e-7 * (1 + 999 * p.scale));
        posenc_sinusoid_free(sinusoid);
    }
    assert_int_equal(n, 4);
}

static void test_tables(void **state)
{
    posenc_sinusoid_params p = sinusoid_params(10, POSENC_SINUSOID_HALVES);
    float rows[MOST];

    (void)state;
    p.shift = 1;
    posenc_sinusoid *whisper = sinusoid_new(&p);
    p.padding_row = 1;
    posenc_sinusoid *m2m100 = sinusoid_new(&p);
    p = sinusoid_params(7, POSENC_SINUSOID_HALVES);
    p.odd = POSENC_ODD_SINE;
    p.exponent_by_width = 1;
    posenc_sinusoid *marian = sinusoid_new(&p);

    sinusoid_run(whisper, 0, 6, 10, POSENC_F32, rows);
    check_run("whisper", rows, 60, 2e-6);
    sinusoid_run(m2m100, 0, 6, 10, POSENC_F32, rows);
    check_run("m2m100", rows, 60, 2e-6);
    sinusoid_run(marian, 0, 6, 7, POSENC_F32, rows);
    check_run("marian", rows, 42, 1e-7);
    posenc_sinusoid_free(whisper);
    posenc_sinusoid_free(m2m100);
    posenc_sinusoid_free(marian);
}

/* A grid [t][y][x] of coordinates, one axis after another as ids have them: t, x, y. */
static void fill_grid(const posenc_sinusoid_params *p, int64_t frames, int64_t height,
                      int64_t width, const double step[3], float *out)
{
    double ids[3][64];
    int64_t count = frames * height * width;
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows;
    posenc_sinusoid *sinusoid = sinusoid_new(p);

    for (int64_t i = 0; i < count; i++) {
        ids[0][i] = (double)(i / (height * width)) * step[0];
        ids[1][i] = (double)(i % width) * step[1];
        ids[2][i] = (double)(i / width % height) * step[2];
    }
    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_F64;
    positions.ids = p->axes == 3 ? ids[0] : ids[1];
    positions.stride[1] = 1;
    positions.axes = p->axes;
    positions.axis_stride = 64;
    posenc_tensor_contiguous(&rows, out, POSENC_F32, 1, count, 1, p->dim);
    test_ok(posenc_sinusoid_fill(sinusoid, &positions, &rows, &error), &error);
    posenc_sinusoid_free(sinusoid);
}

/* DiT: half of the channels by x, half by y. CogVideoX: a quarter by time, the rest by x and y. */
static void test_grids(void **state)
{
    posenc_sinusoid_params p = sinusoid_params(16, POSENC_SINUSOID_HALVES);
    float rows[MOST];

    (void)state;
    p.axes = 2;
    p.axis_dim[0] = p.axis_dim[1] = 8;
    fill_grid(&p, 1, 2, 3, (double[]){1, 16.0 / 3, 8}, rows);
    check_run("grid_2d", rows, 6 * 16, 2e-6);
    fill_grid(&p, 1, 2, 3, (double[]){1, 4.0 / 3 / 2, 1}, rows);
    check_run("grid_2d_scaled", rows, 6 * 16, 2e-7);
    p.dim = 32;
    p.axes = 3;
    p.axis_dim[1] = p.axis_dim[2] = 12;
    fill_grid(&p, 2, 2, 3, (double[]){1, 1 / 1.875, 1 / 1.875}, rows);
    check_run("grid_3d", rows, 12 * 32, 2e-7);
}

/* Rows at 0, 1, 2, 100, 10000 for width 8 by the C library; cos^2 + sin^2 = 1 for each pair makes
 * the squared norm d/2; the product of two rows is a sum of cosines of the difference. */
static void test_lesson(void **state)
{
    static const int64_t positions[] = {0, 1, 2, 100, 10000};
    posenc_sinusoid_params p = sinusoid_params(8, POSENC_SINUSOID_INTERLEAVED);
    posenc_sinusoid *sinusoid = sinusoid_new(&p);
    double rows[5][8];

    (void)state;
    for (int n = 0; n < 5; n++) {
        sinusoid_run(sinusoid, positions[n], 1, 8, POSENC_F64, rows[n]);
        for (int i = 0; i < 4; i++) {
            double angle = (double)positions[n] * pow(10, -i);

            assert_true(fabs(rows[n][2 * i] - sin(angle)) < 1e-12);
            assert_true(fabs(rows[n][2 * i + 1] - cos(angle)) < 1e-12);
        }
    }
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) {
            double product = 0, expected = 0;

            for (int i = 0; i < 8; i++) product += rows[a][i] * rows[b][i];
            for (int i = 0; i < 4; i++)
                expected += cos((double)(positions[a] - positions[b]) * pow(10, -i));
            assert_true(fabs(product - expected) < 1e-11);
            if (a == b) assert_true(fabs(product - 4) < 1e-14);
        }
    posenc_sinusoid_free(sinusoid);
}

/* A table of 512 rows has no row 1000; sinusoid and rotation compute it. */
static void test_beyond_a_table(void **state)
{
    static float table[512 * 8], row[8];
    posenc_sinusoid_params p = sinusoid_params(8, POSENC_SINUSOID_HALVES);
    posenc_rope_params rope = test_params(POSENC_SPLIT_HALF, 8, 8);
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor view, out;

    (void)state;
    posenc_positions_start(&positions, 1000);
    posenc_tensor_contiguous(&view, table, POSENC_F32, 1, 512, 1, 8);
    posenc_tensor_contiguous(&out, row, POSENC_F32, 1, 1, 1, 8);
    test_refused(posenc_learned_add(&view, 0, &positions, 1, NULL, &out, 0, &error),
                 POSENC_ERROR_POSITION, &error, "position 1000|0..511|table");
    posenc_sinusoid *sinusoid = sinusoid_new(&p);
    posenc_plan *plan = test_plan(&rope);

    test_ok(posenc_sinusoid_fill(sinusoid, &positions, &out, &error), &error);
    assert_true(fabs((double)row[0] - sin(1000)) < 1e-7);
    test_ok(posenc_rows(plan, &positions, &out, &error), &error);
    posenc_sinusoid_free(sinusoid);
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_public_forms),
        cmocka_unit_test(test_diffusers_steps), cmocka_unit_test(test_tables),
        cmocka_unit_test(test_grids),         cmocka_unit_test(test_lesson),
        cmocka_unit_test(test_beyond_a_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
