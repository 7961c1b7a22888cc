/* SPDX-License-Identifier: MIT */
/* What sinusoids refuse: each argument wrong in each way, and nothing written. */
#include "sinusoid_call.h"
#include "support/refuse.h"

#include <math.h>
#include <stdio.h>

enum { ARGUMENT = POSENC_ERROR_ARGUMENT, POSITION = POSENC_ERROR_POSITION };
enum { OVERLAP = POSENC_ERROR_OVERLAP };

#define INT(field, value, words) {offsetof(posenc_sinusoid_params, field), 4, value, words}
#define LONG(field, value, words) {offsetof(posenc_sinusoid_params, field), 8, value, words}
#define REAL(field, value, words) {offsetof(posenc_sinusoid_params, field), 0, value, words}

static const struct {
    size_t offset;
    int bytes; /* of an integer; 0: a double */
    double value;
    const char *words;
} wrongs[] = {
    INT(struct_size, 0, "params.struct_size is 0"),
    INT(struct_size, 8, "params.struct_size is 8"),
    INT(dim, 0, "dim is 0|1..65536"),
    INT(dim, 65537, "dim is 65537|1..65536"),
    INT(dim, 7, "dim is 7|even|odd"),
    INT(arrangement, 0, "arrangement is 0|POSENC_SINUSOID_INTERLEAVED"),
    INT(arrangement, 3, "arrangement is 3"),
    INT(cosine_first, 2, "cosine_first is 2|0 or 1"),
    INT(cosine_first, -1, "cosine_first is -1"),
    INT(odd, 3, "odd is 3|POSENC_ODD_REFUSED"),
    INT(odd, -1, "odd is -1"),
    INT(exponent_by_width, 2, "exponent_by_width is 2|0 or 1"),
    REAL(base, 1, "base is 1|> 1"),
    REAL(base, 0x1p76, "base is|2^76"),
    REAL(base, (double)NAN, "base is nan"),
    REAL(shift, 4, "shift is 4|< 4|dim 8"),
    REAL(shift, 5.5, "shift is 5.5"),
    REAL(shift, -(double)INFINITY, "shift is -inf"),
    REAL(scale, 0, "scale is 0|2^-64..2^64"),
    REAL(scale, -1, "scale is -1"),
    REAL(scale, (double)NAN, "scale is nan"),
    LONG(position_offset, 2147483648.0, "position_offset is 2147483648"),
    LONG(position_offset, -2147483649.0, "position_offset is -2147483649"),
    LONG(padding_row, -2, "padding_row is -2|-1 (none)"),
    LONG(max_position, -1, "max_position is -1|>= 0"),
    INT(isa, 99, "isa is 99"),
    INT(axes, 5, "axes is 5|0..4"),
    INT(axes, -1, "axes is -1"),
    INT(axes, 2, "axis_dim[0] is 0|1..dim"),
};

static void refuse_params(const posenc_sinusoid_params *params, const char *words)
{
    posenc_sinusoid *made = NULL;
    posenc_error error = {0, ""};

    test_refused(posenc_sinusoid_create(&made, params, &error), ARGUMENT, &error, words);
    assert_null(made);
    assert_int_equal(posenc_sinusoid_create(&made, params, NULL), ARGUMENT);
    assert_null(made);
}

static void test_params_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        posenc_sinusoid_params p = sinusoid_params(8, POSENC_SINUSOID_HALVES);
        int64_t whole = wrongs[i].bytes ? (int64_t)wrongs[i].value : 0;
        int32_t narrow = (int32_t)whole;

        if (wrongs[i].bytes == 8) memcpy((char *)&p + wrongs[i].offset, &whole, 8);
        else if (wrongs[i].bytes == 4) memcpy((char *)&p + wrongs[i].offset, &narrow, 4);
        else memcpy((char *)&p + wrongs[i].offset, &wrongs[i].value, 8);
        refuse_params(&p, wrongs[i].words);
    }
    refuse_params(NULL, "params is NULL");
    posenc_sinusoid_params p = sinusoid_params(8, POSENC_SINUSOID_HALVES);
    posenc_error error = {0, ""};

    test_refused(posenc_sinusoid_create(NULL, &p, &error), ARGUMENT, &error, "sinusoid is NULL");
    posenc_sinusoid_free(NULL);
}

/* Fields that are wrong together: widths of axes, odd widths, and the denominator of width 2. */
static void test_params_together(void **state)
{
    posenc_sinusoid_params p = sinusoid_params(2, POSENC_SINUSOID_HALVES);

    (void)state;
    p.shift = 1; /* B36-c */
    refuse_params(&p, "shift is 1|< 1|dim 2|denominator");
    p = sinusoid_params(1, POSENC_SINUSOID_HALVES);
    p.odd = POSENC_ODD_ZERO;
    refuse_params(&p, "dim is 1|>= 2");
    p = sinusoid_params(16, POSENC_SINUSOID_HALVES);
    p.axes = 2;
    p.axis_dim[0] = 8;
    p.axis_dim[1] = 6;
    refuse_params(&p, "axis_dim|14|dim (16)");
    p.axis_dim[0] = 9;
    p.axis_dim[1] = 7;
    refuse_params(&p, "axis_dim[0] is 9|even");
    p.odd = POSENC_ODD_SINE;
    posenc_sinusoid_free(sinusoid_new(&p));
    p.shift = 4;
    refuse_params(&p, "shift is 4|axis_dim[1] 7");
}

/* Calls with one argument wrong. */
static void test_calls(void **state)
{
    static float memory[1][3 * 8 + 8];
    posenc_sinusoid_params p = sinusoid_params(8, POSENC_SINUSOID_HALVES);
    posenc_positions run, wrong;
    posenc_tensor out, other;

    (void)state;
    p.max_position = 100;
    posenc_sinusoid *s = sinusoid_new(&p);

    posenc_positions_start(&run, 0);
    posenc_tensor_contiguous(&out, memory[0], POSENC_F32, 1, 3, 1, 8);
    REFUSE(posenc_sinusoid_fill(NULL, &run, &out, error), ARGUMENT, "sinusoid is NULL", memory);
    REFUSE(posenc_sinusoid_fill(s, NULL, &out, error), ARGUMENT, "positions is NULL", memory);
    REFUSE(posenc_sinusoid_fill(s, &run, NULL, error), ARGUMENT, "out is NULL", memory);
    other = out;
    other.shape[3] = 7;
    REFUSE(posenc_sinusoid_fill(s, &run, &other, error), ARGUMENT, "out.shape|7|tokens, 1, 8",
           memory);
    other = out;
    other.dtype = POSENC_I32;
    REFUSE(posenc_sinusoid_fill(s, &run, &other, error), ARGUMENT, "out.dtype is 4", memory);
    other = out;
    other.stride[1] = 4;
    REFUSE(posenc_sinusoid_fill(s, &run, &other, error), OVERLAP, "out|share", memory);
    wrong = run;
    wrong.start = 98;
    REFUSE(posenc_sinusoid_fill(s, &wrong, &out, error), POSITION, "98..100|max_position", memory);
    wrong.start = -2147483649;
    REFUSE(posenc_sinusoid_fill(s, &wrong, &out, error), POSITION, "position -2147483649", memory);
    wrong = run;
    wrong.axes = 2;
    REFUSE(posenc_sinusoid_fill(s, &wrong, &out, error), ARGUMENT, "positions.axes is 2", memory);
    wrong = run;
    wrong.kind = POSENC_POSITIONS_IDS;
    wrong.dtype = POSENC_I32;
    wrong.ids = memory[0];
    wrong.stride[1] = 1;
    memset(memory, 0, sizeof memory);
    assert_int_equal(posenc_sinusoid_fill(s, &wrong, &out, NULL), OVERLAP);
    for (size_t i = 0; i < 24; i++) assert_true(memory[0][i] == 0);
    posenc_sinusoid_free(s);
}

static void test_additions(void **state)
{
    static float memory[2][3 * 8 + 8];
    posenc_sinusoid_params p = sinusoid_params(8, POSENC_SINUSOID_HALVES);
    posenc_sinusoid *s = sinusoid_new(&p);
    posenc_positions run;
    posenc_tensor out, x, other;

    (void)state;
    posenc_positions_start(&run, 0);
    posenc_tensor_contiguous(&out, memory[0], POSENC_F32, 1, 3, 1, 8);
    posenc_tensor_contiguous(&x, memory[1], POSENC_F32, 1, 3, 1, 8);
    REFUSE(posenc_sinusoid_add(NULL, &run, 1, &x, &out, error), ARGUMENT, "sinusoid is", memory);
    REFUSE(posenc_sinusoid_add(s, &run, 1, NULL, &out, error), ARGUMENT, "x is NULL", memory);
    REFUSE(posenc_sinusoid_add(s, &run, (double)NAN, &x, &out, error), ARGUMENT,
           "embedding_scale is nan|finite", memory);
    REFUSE(posenc_sinusoid_add(s, &run, 1e39, &x, &out, error), ARGUMENT,
           "embedding_scale is 1e+39|float32", memory);
    other = out;
    other.shape[1] = 2;
    REFUSE(posenc_sinusoid_add(s, &run, 1, &x, &other, error), ARGUMENT, "out.shape|of x", memory);
    other = x;
    other.data = memory[1] + 1;
    REFUSE(posenc_sinusoid_add(s, &run, 1, &x, &other, error), OVERLAP, "out|x|share", memory);
    other = out;
    other.dtype = POSENC_F64;
    other.shape[1] = x.shape[1] = 1;
    REFUSE(posenc_sinusoid_add(s, &run, 1, &x, &other, error), ARGUMENT, "out.dtype 6|POSENC_F64",
           memory);
    posenc_sinusoid_free(s);
}

/* The offset counts for the range, and an empty tensor asks for nothing. */
static void test_edges(void **state)
{
    float row[8];
    posenc_sinusoid_params p = sinusoid_params(8, POSENC_SINUSOID_HALVES);
    posenc_positions run;
    posenc_tensor out;

    (void)state;
    p.position_offset = 2;
    posenc_sinusoid *s = sinusoid_new(&p);

    posenc_positions_start(&run, INT32_MAX - 1);
    posenc_tensor_contiguous(&out, row, POSENC_F32, 1, 1, 1, 8);
    REFUSE(posenc_sinusoid_fill(s, &run, &out, error), POSITION, "2147483646|position_offset", row);
    posenc_positions_start(&run, INT32_MIN);
    test_ok(posenc_sinusoid_fill(s, &run, &out, NULL), NULL);
    posenc_positions_start(&run, INT32_MAX - 2);
    test_ok(posenc_sinusoid_fill(s, &run, &out, NULL), NULL);
    refuse_mark(row, sizeof row);
    out.shape[1] = 0;
    test_ok(posenc_sinusoid_fill(s, &run, &out, NULL), NULL);
    test_ok(posenc_sinusoid_add(s, &run, 1, &out, NULL, NULL), NULL);
    refuse_unmarked(row, sizeof row);
    posenc_sinusoid_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_params_fields),
        cmocka_unit_test(test_params_together),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_additions),
        cmocka_unit_test(test_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
