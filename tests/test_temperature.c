/* SPDX-License-Identifier: MIT */
/* Query temperature: nearest floats, stored runs, kinds of positions, every wrong argument. */
#include "support/numbers.h"
#include "support/refuse.h"

#include <math.h>

enum { ARGUMENT = POSENC_ERROR_ARGUMENT, POSITION = POSENC_ERROR_POSITION, MAX = 512 };

static posenc_positions ids_at(const int64_t *ids)
{
    return (posenc_positions){.struct_size = sizeof(posenc_positions),
                              .kind = POSENC_POSITIONS_IDS, .dtype = POSENC_I64, .ids = ids,
                              .stride = {0, 1}};
}

static size_t read_ids(const char *file, const char *id, int64_t *ids)
{
    double values[MAX];
    size_t n = test_numbers(file, id, "positions", values, MAX);

    for (size_t i = 0; i < n; i++) ids[i] = (int64_t)values[i];
    return n;
}

/* A scale of the file; `tolerance` 0: bit for bit. */
static void check_stored(const char *file, const char *id, const char *parameters,
                         double tolerance)
{
    double p[3], expected[MAX];
    int64_t ids[MAX];
    float scale[MAX];
    size_t n = read_ids(file, id, ids);
    posenc_positions positions = ids_at(ids);
    posenc_tensor out;
    posenc_error error = {0, ""};

    test_numbers(file, id, parameters, p, 3);
    assert_int_equal(test_numbers(file, id, "scale", expected, MAX), n);
    posenc_tensor_contiguous(&out, scale, POSENC_F32, 1, (int64_t)n, 1, 1);
    test_ok(posenc_query_temperature(p[0], (int64_t)p[1], (int64_t)p[2], &positions, &out, &error),
            &error);
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)scale[i] - expected[i]) <= tolerance * expected[i])) {
            fail_msg("%s at %lld: %.9g instead of %.9g", id, (long long)ids[i], (double)scale[i],
                     expected[i]);
        }
    }
}

static void test_nearest(void **state)
{
    char id[64];
    size_t n = 0;

    (void)state;
    for (; test_number_id("nearest.txt", "parameters", n, id, sizeof id); n++) {
        check_stored("nearest.txt", id, "parameters", 0);
    }
    assert_int_equal(n, 10);
}

/* transformers rounds four times in float32: within 3 units of 2^-24. */
static void test_transformers(void **state)
{
    (void)state;
    check_stored("builders_transformers5.txt", "llama4", "temperature", 0x1.8p-23);
    check_stored("builders_transformers5.txt", "ministral3", "temperature", 0x1.8p-23);
}

/* Starts, starts of rows and ids agree, through strides, and only the scale is written. */
static void test_positions(void **state)
{
    const int32_t starts[2] = {5, 90};
    float all[2][3] = {{0}}, wide[2][7], one[3];
    posenc_positions positions = {.struct_size = sizeof positions,
                                  .kind = POSENC_POSITIONS_STARTS, .dtype = POSENC_I32,
                                  .ids = starts, .stride = {1, 0}};
    posenc_tensor out;

    (void)state;
    for (int i = 0; i < 14; i++) wide[i / 7][i % 7] = -1;
    posenc_tensor_contiguous(&out, all, POSENC_F32, 2, 3, 1, 1);
    test_ok(posenc_query_temperature(0.1, 2, 0, &positions, &out, NULL), NULL);
    out.data = wide;
    out.stride[0] = 7;
    out.stride[1] = 2;
    test_ok(posenc_query_temperature(0.1, 2, 0, &positions, &out, NULL), NULL);
    for (int b = 0; b < 2; b++) {
        posenc_positions_start(&positions, starts[b]);
        posenc_tensor_contiguous(&out, one, POSENC_F32, 1, 3, 1, 1);
        test_ok(posenc_query_temperature(0.1, 2, 0, &positions, &out, NULL), NULL);
        assert_memory_equal(one, all[b], sizeof one);
        for (int t = 0; t < 7; t++) {
            assert_true(wide[b][t] == (t % 2 || t > 4 ? -1 : all[b][t / 2]));
        }
    }
    assert_true(all[0][0] < all[0][1] && all[0][1] == all[0][2]);
    posenc_tensor_contiguous(&out, NULL, POSENC_F32, 1, 0, 1, 1);
    test_ok(posenc_query_temperature(0.1, 2, 0, &positions, &out, NULL), NULL);
    out.shape[0] = INT64_MAX; /* rows without tokens: done at once */
    test_ok(posenc_query_temperature(0.1, 2, 0, &positions, &out, NULL), NULL);
}

/* The order of tokens, and what was asked before, change nothing. */
static void test_no_memory(void **state)
{
    const int64_t ids[] = {9, 0, 90, 9, 0};
    float scale[5], again[5], alone;
    posenc_positions positions = ids_at(ids);
    posenc_tensor out, one;

    (void)state;
    posenc_tensor_contiguous(&out, scale, POSENC_F32, 1, 5, 1, 1);
    posenc_tensor_contiguous(&one, &alone, POSENC_F32, 1, 1, 1, 1);
    test_ok(posenc_query_temperature(0.1, 8, 0, &positions, &out, NULL), NULL);
    out.data = again;
    test_ok(posenc_query_temperature(0.1, 8, 0, &positions, &out, NULL), NULL);
    assert_memory_equal(again, scale, sizeof scale);
    for (int t = 0; t < 5; t++) {
        for (int repeat = 0; repeat < 2; repeat++) {
            posenc_positions_start(&positions, ids[t]);
            test_ok(posenc_query_temperature(0.1, 8, 0, &positions, &one, NULL), NULL);
            assert_true(alone == scale[t]);
        }
    }
    assert_true(scale[1] == 1 && scale[4] == 1 && scale[0] > 1 && scale[2] > scale[3]);
}

static void test_bad_numbers(void **state)
{
    float scale[4];
    posenc_positions p;
    posenc_tensor out;

    (void)state;
    posenc_positions_start(&p, 0);
    posenc_tensor_contiguous(&out, scale, POSENC_F32, 1, 4, 1, 1);
    REFUSE(posenc_query_temperature(-0.1, 8, 0, &p, &out, error), ARGUMENT,
           "factor is -0.1|0..2^64", scale);
    REFUSE(posenc_query_temperature((double)NAN, 8, 0, &p, &out, error), ARGUMENT, "factor is nan",
           scale);
    REFUSE(posenc_query_temperature(0x1.1p64, 8, 0, &p, &out, error), ARGUMENT, "factor is",
           scale);
    REFUSE(posenc_query_temperature(0.1, 0, 0, &p, &out, error), ARGUMENT, "period is 0|>= 1",
           scale);
    REFUSE(posenc_query_temperature(0.1, INT64_MIN, 0, &p, &out, error), ARGUMENT, "period is -",
           scale);
    REFUSE(posenc_query_temperature(0.1, 8, -1, &p, &out, error), ARGUMENT, "offset is -1|0..",
           scale);
    REFUSE(posenc_query_temperature(0.1, 8, INT64_MAX, &p, &out, error), ARGUMENT, "offset is",
           scale);
}

static void test_bad_positions(void **state)
{
    int64_t ids[4] = {0, 1, -2, 3};
    const double reals[4] = {0, 1, 2, 3};
    float scale[8];
    posenc_positions p;
    posenc_tensor out;

    (void)state;
    posenc_tensor_contiguous(&out, scale, POSENC_F32, 1, 4, 1, 1);
    REFUSE(posenc_query_temperature(0.1, 8, 0, NULL, &out, error), ARGUMENT, "positions is NULL",
           scale);
    posenc_positions_start(&p, -1);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), POSITION, "-1|query temperature",
           scale);
    posenc_positions_start(&p, (INT64_C(1) << 31) - 3);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), POSITION, "2147483648", scale);
    p = ids_at(ids);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), POSITION, "-2|token 2", scale);
    p.kind = 9;
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "positions.kind is 9",
           scale);
    p = ids_at((const int64_t *)(const void *)reals);
    p.dtype = POSENC_F64;
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "positions.dtype is 6",
           scale);
    p = ids_at(NULL);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "positions.ids is NULL",
           scale);
    ids[2] = 2;
    p = ids_at(ids);
    p.axes = 3;
    p.axis_stride = 1;
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT,
           "positions.axes is 3|be 0 or 1", scale);
}

static void test_bad_scale(void **state)
{
    double room[16];
    float *scale = (float *)(void *)room;
    posenc_positions p;
    posenc_tensor out;

    (void)state;
    posenc_positions_start(&p, 0);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, NULL, error), ARGUMENT, "scale is NULL", room);
    posenc_tensor_contiguous(&out, NULL, POSENC_F32, 1, 4, 1, 1);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "scale.data is NULL",
           room);
    posenc_tensor_contiguous(&out, (char *)scale + 2, POSENC_F32, 1, 4, 1, 1);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "scale.data|aligned",
           room);
    posenc_tensor_contiguous(&out, scale, POSENC_F16, 1, 4, 1, 1);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "scale.dtype is 2",
           room);
    posenc_tensor_contiguous(&out, scale, POSENC_F64, 1, 4, 1, 1);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "scale.dtype is 6",
           room);
    posenc_tensor_contiguous(&out, scale, POSENC_F32, 1, 4, 2, 1);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "scale.shape[2] is 2",
           room);
    posenc_tensor_contiguous(&out, scale, POSENC_F32, 1, 4, 1, 3);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "scale.shape[3] is 3",
           room);
    posenc_tensor_contiguous(&out, scale, POSENC_F32, 1, -4, 1, 1);
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), ARGUMENT, "scale.shape[1] is -4",
           room);
    posenc_tensor_contiguous(&out, scale, POSENC_F32, 1, 4, 1, 1);
    out.stride[1] = 0;
    REFUSE(posenc_query_temperature(0.1, 8, 0, &p, &out, error), POSENC_ERROR_OVERLAP,
           "scale|share memory", room);
    {
        /* The ids must be good, so this buffer is not marked. */
        int32_t ids[8] = {0, 1, 2, 3, 0, 0, 0, 0};
        posenc_error error = {0, ""};

        posenc_tensor_contiguous(&out, ids + 3, POSENC_F32, 1, 4, 1, 1);
        p = (posenc_positions){.struct_size = sizeof p, .kind = POSENC_POSITIONS_IDS,
                               .dtype = POSENC_I32, .ids = ids, .stride = {0, 1}};
        test_refused(posenc_query_temperature(0.1, 8, 0, &p, &out, &error), POSENC_ERROR_OVERLAP,
                     &error, "scale|positions.ids|share memory");
        assert_int_equal(ids[3], 3);
        assert_int_equal(ids[4], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_bad_positions),
        cmocka_unit_test(test_bad_scale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
