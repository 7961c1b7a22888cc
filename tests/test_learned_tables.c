/* SPDX-License-Identifier: MIT */
/* Learned tables before and after training: resampling, first values, rows that were used. */
#include "support/half.h"
#include "support/numbers.h"
#include "support/refuse.h"

#include <math.h>
#include <stdio.h>

enum { ARGUMENT = POSENC_ERROR_ARGUMENT, OVERLAP = POSENC_ERROR_OVERLAP };

static posenc_tensor table_of(void *data, int32_t dtype, int64_t rows, int64_t channels)
{
    posenc_tensor view;

    posenc_tensor_contiguous(&view, data, dtype, 1, rows, 1, channels);
    return view;
}

/* torch computes coordinates in float32: some 5e-7 of a step, times steps up to 4. */
static void test_resampling(void **state)
{
    static const int64_t sizes[5][2] = {{4, 5}, {7, 9}, {2, 3}, {1, 1}, {5, 4}};
    double values[60], expected[189];
    float source[60], out[189];

    (void)state;
    assert_int_equal(test_numbers("absolute_run.txt", "resample", "table", values, 60), 60);
    for (int i = 0; i < 60; i++) source[i] = (float)values[i];
    posenc_tensor from = table_of(source, POSENC_F32, 20, 3);
    for (int n = 0; n < 10; n++) {
        int64_t rows = sizes[n / 2][0], columns = sizes[n / 2][1];
        posenc_tensor to = table_of(out, POSENC_F32, rows * columns, 3);
        char name[32];

        snprintf(name, sizeof name, "%s.%dx%d", n % 2 ? "centres" : "corners", (int)rows,
                 (int)columns);
        size_t count = test_numbers("absolute_run.txt", "resample", name, expected, 189);
        assert_int_equal(count, rows * columns * 3);
        test_ok(posenc_learned_resample(&from, 4, 5, &to, rows, columns,
                                        n % 2 ? POSENC_RESAMPLE_LINEAR_CENTRES
                                              : POSENC_RESAMPLE_LINEAR, NULL), NULL);
        for (size_t i = 0; i < count; i++)
            if (fabs((double)out[i] - expected[i]) > 3e-6)
                fail_msg("%s, value %zu: %.9g instead of %.9g", name, i, (double)out[i],
                         expected[i]);
        if (rows == 4) assert_memory_equal(out, source, sizeof source);
    }
}

/* An equal size copies infinities, and a line is a grid of one row. 16-bit tables round once. */
static void test_resampled_edges(void **state)
{
    float source[4] = {1, (float)INFINITY, -2, 4}, line[7];
    uint16_t half[7];
    posenc_tensor from = table_of(source, POSENC_F32, 4, 1), to = table_of(line, POSENC_F32, 4, 1);
    posenc_tensor narrow = table_of(half, POSENC_BF16, 7, 1);

    (void)state;
    for (int mode = 1; mode <= 2; mode++) {
        test_ok(posenc_learned_resample(&from, 1, 4, &to, 1, 4, mode, NULL), NULL);
        assert_memory_equal(line, source, sizeof source);
    }
    source[1] = 2;
    test_ok(posenc_learned_resample(&from, 1, 4, &narrow, 1, 7, POSENC_RESAMPLE_LINEAR, NULL),
            NULL);
    for (int i = 0; i < 7; i++) {
        double value = i % 2 ? 0.5 * ((double)source[i / 2] + (double)source[i / 2 + 1])
                             : (double)source[i / 2];

        assert_int_equal(half[i], test_narrow(value, POSENC_BF16));
    }
}

/* splitmix64 as its authors publish it, state by state. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Box and Muller by the C library; the mean, the deviation, and one stored hash of the bits. */
static void test_first_values(void **state)
{
    enum { ROWS = 64, CHANNELS = 33, COUNT = ROWS * CHANNELS };
    static float values[COUNT];
    posenc_tensor table = table_of(values, POSENC_F32, ROWS, CHANNELS);
    uint64_t generator = 42;
    double sum = 0, squares = 0;

    (void)state;
    test_ok(posenc_learned_init(&table, 0.02, 42, NULL), NULL);
    for (int i = 0; i < COUNT; i += 2) {
        double u = (double)((next(&generator) >> 11) + 1) * 0x1p-53;
        double angle = 2 * acos(-1) * ((double)next(&generator) * 0x1p-64);
        double radius = 0.02 * sqrt(-2 * log(u));

        assert_true(fabs((double)values[i] - radius * cos(angle)) < 1e-8);
        assert_true(fabs((double)values[i + 1] - radius * sin(angle)) < 1e-8);
    }
    for (int i = 0; i < COUNT; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    assert_true(fabs(sum / COUNT) < 0.02 * 4 / sqrt(COUNT));
    assert_true(fabs(sqrt(squares / COUNT) - 0.02) < 0.02 * 4 / sqrt(2 * COUNT));
    assert_int_equal(test_hash(TEST_HASH_START, values, COUNT, sizeof *values),
                     UINT64_C(0x8b1bdf79860e67f7));
}

/* Rows as they were at first are unused; moved, shrunk, grown or broken ones are used. */
static void test_used_rows(void **state)
{
    enum { ROWS = 6, CHANNELS = 256 };
    static float values[ROWS * CHANNELS];
    static const uint8_t expected[ROWS] = {0, 1, 0, 1, 1, 0};
    posenc_tensor table = table_of(values, POSENC_F32, ROWS, CHANNELS);
    uint8_t used[ROWS + 1] = {9, 9, 9, 9, 9, 9, 9};
    int64_t count = -1;

    (void)state;
    test_ok(posenc_learned_init(&table, 0.02, 7, NULL), NULL);
    for (int i = 0; i < CHANNELS; i++) {
        values[CHANNELS + i] *= 2;
        values[3 * CHANNELS + i] *= 0.5f;
    }
    values[4 * CHANNELS + 5] = (float)NAN;
    test_ok(posenc_learned_used(&table, 0.02, 0.75, 1.25, used, &count, NULL), NULL);
    assert_memory_equal(used, expected, ROWS);
    assert_int_equal(used[ROWS], 9);
    assert_int_equal(count, 3);
    test_ok(posenc_learned_used(&table, 0.02, 0.75, 1.25, NULL, &count, NULL), NULL);
    test_ok(posenc_learned_used(&table, 0.02, 0.75, 1.25, used, NULL, NULL), NULL);
    assert_int_equal(count, 3);
}

static void test_refusals(void **state)
{
    static float source[20], out[21];
    posenc_tensor from = table_of(source, POSENC_F32, 4, 5), to = table_of(out, POSENC_F32, 4, 5);
    posenc_tensor other = to, itself = from;

    (void)state;
#define RESAMPLE(a, r, c, b, p, q, mode) posenc_learned_resample(a, r, c, b, p, q, mode, error)
    REFUSE(RESAMPLE(NULL, 2, 2, &to, 2, 2, 1), ARGUMENT, "table is NULL", out);
    REFUSE(RESAMPLE(&from, 2, 2, NULL, 2, 2, 1), ARGUMENT, "out is NULL", out);
    REFUSE(RESAMPLE(&from, 2, 3, &to, 2, 2, 1), ARGUMENT, "table.shape[1] is 4|(6)", out);
    REFUSE(RESAMPLE(&from, 2, 2, &to, 3, 2, 1), ARGUMENT, "out.shape[1] is 4|out_rows|(6)", out);
    REFUSE(RESAMPLE(&from, 0, 2, &to, 2, 2, 1), ARGUMENT, "rows is 0|1..2^30", out);
    REFUSE(RESAMPLE(&from, 2, 2, &to, 2, -2, 1), ARGUMENT, "out_columns -2", out);
    REFUSE(RESAMPLE(&from, 2, 2, &to, 2, 2, 0), ARGUMENT, "mode is 0|POSENC_RESAMPLE", out);
    REFUSE(RESAMPLE(&from, 2, 2, &to, 2, 2, 3), ARGUMENT, "mode is 3", out);
    other.shape[3] = 4;
    REFUSE(RESAMPLE(&from, 2, 2, &other, 2, 2, 1), ARGUMENT, "out.shape[3] is 4|(5)", out);
    itself.data = out + 1;
    REFUSE(RESAMPLE(&itself, 2, 2, &to, 2, 2, 1), OVERLAP, "out|table|share", out);
    other = to;
    other.stride[1] = 0;
    REFUSE(RESAMPLE(&from, 2, 2, &other, 2, 2, 1), OVERLAP, "out|share", out);
    REFUSE(posenc_learned_init(NULL, 1, 0, error), ARGUMENT, "table is NULL", out);
    REFUSE(posenc_learned_init(&to, 0, 0, error), ARGUMENT, "deviation is 0|> 0", out);
    REFUSE(posenc_learned_init(&to, (double)NAN, 0, error), ARGUMENT, "deviation is nan", out);
    REFUSE(posenc_learned_init(&other, 1, 0, error), OVERLAP, "table|share", out);
#define USED(t, d, low, high) posenc_learned_used(t, d, low, high, (uint8_t *)out, NULL, error)
    REFUSE(USED(NULL, 1, 0.5, 2), ARGUMENT, "table is NULL", out);
    REFUSE(USED(&from, -1, 0.5, 2), ARGUMENT, "deviation is -1", out);
    REFUSE(USED(&from, 1, -0.5, 2), ARGUMENT, "low is -0.5", out);
    REFUSE(USED(&from, 1, 2, 1), ARGUMENT, "high is 1|low", out);
    REFUSE(USED(&to, 1, 0.5, 2), OVERLAP, "used|table|share", out);
#undef RESAMPLE
#undef USED
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resampling),   cmocka_unit_test(test_resampled_edges),
        cmocka_unit_test(test_first_values), cmocka_unit_test(test_used_rows),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
