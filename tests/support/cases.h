/* SPDX-License-Identifier: MIT */
/* Short forms for the numbers of tests/data/cases.txt and for rotating one head by them. */
#ifndef TEST_CASES_H
#define TEST_CASES_H

#include "numbers.h"
#include "test.h"

#include <math.h>

/* One number of a case. */
static inline double case_number(const char *id, const char *name)
{
    double value;

    assert_int_equal(test_numbers("cases.txt", id, name, &value, 1), 1);
    return value;
}

/* Numbers of a case as floats. Returns how many. */
static inline size_t case_floats(const char *id, const char *name, float *out, size_t capacity)
{
    double values[1024];
    size_t n = test_numbers("cases.txt", id, name, values, capacity < 1024 ? capacity : 1024);

    for (size_t i = 0; i < n; i++) out[i] = (float)values[i];
    return n;
}

/* Holds floats against the numbers of a case. */
static inline void case_check(const char *id, const char *name, const float *got, double tolerance)
{
    double expected[1024];
    size_t n = test_numbers("cases.txt", id, name, expected, 1024);

    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)got[i] - expected[i]) <= tolerance)) {
            fail_msg("%s %s[%zu]: %.9g instead of %.9g", id, name, i, (double)got[i], expected[i]);
        }
    }
}

/* The pattern of the cases: x[i] = ((7 i) mod 11 - 5) / 4. */
static inline void case_pattern(float *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = (float)(7 * i % 11 - 5) / 4.0f;
}

static inline posenc_plan *case_plan(int32_t layout, int32_t head_dim, int32_t rotary_dim,
                                     int32_t isa)
{
    posenc_rope_params params = test_params(layout, head_dim, rotary_dim);

    params.isa = isa;
    return test_plan(&params);
}

/* Rotates x[batch][tokens][heads][head_dim] in place from `start` on. */
static inline void case_rope(const posenc_plan *plan, float *x, size_t batch, size_t tokens,
                             size_t heads, int64_t start)
{
    posenc_error error = {0, ""};

    test_ok(posenc_rope_flat(plan, x, NULL, POSENC_F32, batch, tokens, heads, 0, start, &error),
            &error);
}

/* The row of one position. */
static inline void case_row(const posenc_plan *plan, int64_t position, float *row)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows;

    posenc_positions_start(&positions, position);
    posenc_tensor_contiguous(&rows, row, POSENC_F32, 1, 1, 1, 2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
}

/* Runs a case on every ISA. */
static inline void case_each_isa(void (*run)(int32_t isa))
{
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    for (size_t i = 0; i < n; i++) run(isas[i]);
}

#endif
