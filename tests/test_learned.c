/* SPDX-License-Identifier: MIT */
/* Rows of learned tables: which row a token reads, sums on every ISA, and what is refused. */
#include "support/cases.h"
#include "support/half.h"
#include "support/random.h"
#include "support/refuse.h"

#include <math.h>

enum { ARGUMENT = POSENC_ERROR_ARGUMENT, POSITION = POSENC_ERROR_POSITION };
enum { OVERLAP = POSENC_ERROR_OVERLAP, ROWS = 12, MOST = 2100 };

/* B37-a and M2M100's own function: padding keeps its number, others count on from it. */
static void test_rows_of_tokens(void **state)
{
    static const int64_t tokens[8] = {5, 6, 1, 7, 1, 1, 9, 8};
    double expected[8];
    int64_t rows[8];

    (void)state;
    for (int64_t past = 0; past <= 3; past += 3) {
        test_ok(posenc_learned_rows(tokens, 2, 4, 1, past, rows, NULL), NULL);
        test_numbers("absolute_run.txt", "row_numbers", past ? "past.3" : "past.0", expected, 8);
        for (int i = 0; i < 8; i++) assert_int_equal(rows[i], (int64_t)expected[i]);
    }
    test_ok(posenc_learned_rows(tokens, 2, 4, 1, 0, rows, NULL), NULL);
    test_numbers("cases.txt", "B37-a", "expected.0", expected, 4);
    test_numbers("cases.txt", "B37-a", "expected.1", expected + 4, 4);
    for (int i = 0; i < 8; i++) assert_int_equal(rows[i], (int64_t)expected[i]);
    memcpy(rows, tokens, sizeof rows); /* in place */
    test_ok(posenc_learned_rows(rows, 2, 4, 1, 0, rows, NULL), NULL);
    for (int i = 0; i < 8; i++) assert_int_equal(rows[i], (int64_t)expected[i]);
}

/* The number of the row that position p reads, from a table whose rows hold their numbers. */
static int32_t row_read(int64_t position, int64_t offset, int64_t table_rows, double *row)
{
    float table[64];
    posenc_positions positions;
    posenc_tensor view, out;

    for (int i = 0; i < 64; i++) table[i] = (float)i;
    posenc_positions_start(&positions, position);
    posenc_tensor_contiguous(&view, table, POSENC_F32, 1, table_rows, 1, 1);
    posenc_tensor_contiguous(&out, row, POSENC_F64, 1, 1, 1, 1);
    return posenc_learned_add(&view, offset, &positions, 1, NULL, &out, 0, NULL);
}

/* OPT: positions from the mask, -1 on padding, rows 2 on (B37-b); decoding counts on (B37-c); a
 * table of 12 rows with offset 2 serves 0..9 (B37-d). */
static void test_offsets(void **state)
{
    double expected[8], row = -1;
    uint8_t mask[8] = {0, 0, 1, 1, 1, 1, 1, 1};
    int64_t ids[8];

    (void)state;
    test_numbers("cases.txt", "B37-b", "expected.0", expected, 4);
    test_numbers("cases.txt", "B37-b", "expected.1", expected + 4, 4);
    test_ok(posenc_ids_from_mask(mask, 2, 4, -1, ids, NULL), NULL);
    for (int i = 0; i < 8; i++) {
        test_ok(row_read(ids[i], 2, ROWS, &row), NULL);
        assert_true(row == expected[i]);
    }
    test_ok(row_read((int64_t)case_number("B37-c", "input.past"), 0, 64, &row), NULL);
    assert_true(row == case_number("B37-c", "expected.row"));
    test_ok(row_read(9, 2, ROWS, &row), NULL);
    assert_true(row == 11);
    assert_int_equal(row_read(10, 2, ROWS, &row), POSITION);
    assert_int_equal(row_read(-3, 2, ROWS, &row), POSITION);
    assert_true(row == 11);
}

/* Data of any dtype in [-1, 1). */
static void fill(void *data, int32_t dtype, int64_t count, struct test_random *random)
{
    for (int64_t i = 0; i < count; i++) {
        if (dtype == POSENC_F64) ((double *)data)[i] = (double)test_unit(random) / 3;
        else test_store(data, dtype, i, (double)test_unit(random));
    }
}

static double load(const void *data, int32_t dtype, int64_t i)
{
    return dtype == POSENC_F64 ? ((const double *)data)[i] : test_load(data, dtype, i);
}

/* One element of the sum by its definition. */
static void expect(void *to, int32_t dtype, int64_t i, const void *x, int32_t x_dtype, double row)
{
    double sum = row;

    if (dtype == POSENC_F64) {
        if (x) sum = fma(load(x, x_dtype, i), 1.3, row);
        ((double *)to)[i] = sum;
        return;
    }
    if (x) sum = (double)fmaf((float)load(x, x_dtype, i), 1.3f, (float)row);
    test_store(to, dtype, i, sum);
}

struct sums {
    double table[ROWS * MOST], x[14 * MOST], out[14 * MOST], expected[14 * MOST];
};

static void check_sums(struct sums *s, int32_t isa, int32_t table_dtype, int32_t from, int32_t to,
                       int64_t channels, int in_place)
{
    static const int32_t ids[14] = {3, 9, -2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1};
    struct test_random random = {.state = (uint32_t)channels};
    posenc_positions positions;
    posenc_tensor table, x, out;
    posenc_error error = {0, ""};

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I32;
    positions.ids = ids;
    positions.stride[0] = 7;
    positions.stride[1] = 1;
    posenc_tensor_contiguous(&table, s->table, table_dtype, 1, ROWS, 1, channels);
    posenc_tensor_contiguous(&x, s->x, from ? from : to, 2, 7, 1, channels);
    posenc_tensor_contiguous(&out, s->out, to, 2, 7, 1, channels);
    fill(s->table, table_dtype, ROWS * channels, &random);
    fill(s->x, x.dtype, 14 * channels, &random);
    for (int64_t t = 0; t < 14; t++)
        for (int64_t c = 0; c < channels; c++)
            expect(s->expected, to, t * channels + c, from ? s->x : NULL, x.dtype,
                   test_load(s->table, table_dtype, (ids[t] + 2) * channels + c));
    test_ok(posenc_learned_add(&table, 2, &positions, 1.3, from ? &x : NULL,
                               in_place ? NULL : &out, isa, &error), &error);
    size_t size = to == POSENC_F64 ? 8 : test_size(to);
    assert_memory_equal(in_place ? s->x : s->out, s->expected, (size_t)(14 * channels) * size);
}

/* Every table with every x and out, on every ISA, around the widths of vectors and chunks. */
static void test_sums(void **state)
{
    static const int64_t widths[] = {1, 7, 16, 35, 83, MOST};
    struct sums *s = malloc(sizeof *s);
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);

    (void)state;
    assert_non_null(s);
    for (size_t w = test_quick() ? 3 : 0; w < 6; w++)
        for (size_t k = 0; k < count; k++)
            for (int32_t table = POSENC_F32; table <= POSENC_BF16; table++) {
                for (int32_t to = POSENC_F32; to <= POSENC_BF16; to++) {
                    for (int32_t from = 0; from <= POSENC_BF16; from++)
                        check_sums(s, isas[k], table, from, to, widths[w], 0);
                    check_sums(s, isas[k], table, to, to, widths[w], 1);
                }
                check_sums(s, isas[k], table, 0, POSENC_F64, widths[w], 0);
                check_sums(s, isas[k], table, POSENC_F64, POSENC_F64, widths[w], 1);
            }
    free(s);
}

/* Sequences that read the same rows go together: as many as there are, and one that does not. */
static void check_batch(struct sums *s, int32_t isa, int32_t table_dtype, int32_t dtype,
                        int64_t channels, int64_t other)
{
    enum { BATCH = 17, TOKENS = 9 };
    struct test_random random = {.state = (uint32_t)channels};
    int64_t ids[BATCH][TOKENS], count = BATCH * TOKENS * channels;
    posenc_positions positions;
    posenc_tensor table, x, out;
    posenc_error error = {0, ""};

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I64;
    positions.ids = ids;
    positions.stride[0] = TOKENS;
    positions.stride[1] = 1;
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t t = 0; t < TOKENS; t++) ids[b][t] = (b == other && t == 5 ? 2 : t);
    posenc_tensor_contiguous(&table, s->table, table_dtype, 1, ROWS, 1, channels);
    posenc_tensor_contiguous(&x, s->x, POSENC_F32, BATCH, TOKENS, 1, channels);
    posenc_tensor_contiguous(&out, s->out, dtype, BATCH, TOKENS, 1, channels);
    fill(s->table, table_dtype, ROWS * channels, &random);
    fill(s->x, POSENC_F32, count, &random);
    for (int64_t i = 0; i < count; i++) {
        int64_t token = i / channels, row = ids[token / TOKENS][token % TOKENS];

        expect(s->expected, dtype, i, s->x, POSENC_F32,
               test_load(s->table, table_dtype, row * channels + i % channels));
    }
    test_ok(posenc_learned_add(&table, 0, &positions, 1.3, &x, &out, isa, &error), &error);
    assert_memory_equal(s->out, s->expected, (size_t)count * test_size(dtype));
    if (dtype != POSENC_F32) return;
    test_ok(posenc_learned_add(&table, 0, &positions, 1.3, &x, NULL, isa, &error), &error);
    assert_memory_equal(s->x, s->expected, (size_t)count * test_size(dtype));
}

static void test_batches(void **state)
{
    struct sums *s = malloc(sizeof *s);
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);

    (void)state;
    assert_non_null(s);
    for (size_t k = 0; k < count; k++)
        for (int32_t dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++)
            for (int64_t other = -1; other < 17; other += 6) {
                check_batch(s, isas[k], POSENC_F32, dtype, 83, other);
                check_batch(s, isas[k], POSENC_F16, dtype, 167, other);
            }
    free(s);
}

static void test_refused_sums(void **state)
{
    static float table[ROWS * 4], memory[1][3 * 4 + 8];
    posenc_positions run, wrong;
    posenc_tensor t, out, other;

    (void)state;
    posenc_positions_start(&run, 0);
    posenc_tensor_contiguous(&t, table, POSENC_F32, 1, ROWS, 1, 4);
    posenc_tensor_contiguous(&out, memory, POSENC_F32, 1, 3, 1, 4);
#define ADD(t, offset, p, x, out) posenc_learned_add(t, offset, p, 1, x, out, 0, error)
    REFUSE(ADD(NULL, 0, &run, NULL, &out), ARGUMENT, "table is NULL", memory);
    REFUSE(ADD(&t, 0, NULL, NULL, &out), ARGUMENT, "positions is NULL", memory);
    REFUSE(ADD(&t, 0, &run, NULL, NULL), ARGUMENT, "out is NULL", memory);
    REFUSE(ADD(&t, INT64_MIN, &run, NULL, &out), ARGUMENT, "offset is -9223372036854775808",
           memory);
    REFUSE(ADD(&t, 10, &run, NULL, &out), POSITION, "0..2|-10..1|table less offset", memory);
    REFUSE(ADD(&t, -1, &run, NULL, &out), POSITION, "position 0|1..12", memory);
    REFUSE(posenc_learned_add(&t, 0, &run, 1, NULL, &out, 99, error), ARGUMENT, "isa is 99",
           memory);
    REFUSE(posenc_learned_add(&t, 0, &run, (double)INFINITY, &out, NULL, 0, error), ARGUMENT,
           "embedding_scale is inf", memory);
    other = t;
    other.shape[2] = 2;
    other.shape[1] = 6;
    REFUSE(ADD(&other, 0, &run, NULL, &out), ARGUMENT, "table.shape|[1, rows, 1, channels]",
           memory);
    other = t;
    other.dtype = POSENC_F64;
    REFUSE(ADD(&other, 0, &run, NULL, &out), ARGUMENT, "table.dtype is 6", memory);
    other = out;
    other.shape[3] = 3;
    REFUSE(ADD(&t, 0, &run, NULL, &other), ARGUMENT, "out.shape|table's channels", memory);
    REFUSE(ADD(&t, 0, &run, &other, NULL), ARGUMENT, "x.shape|table's channels", memory);
    other = t;
    other.data = memory[0] + 4;
    other.shape[1] = 3;
    REFUSE(ADD(&other, 0, &run, NULL, &out), OVERLAP, "out|table|share", memory);
    wrong = run;
    wrong.kind = POSENC_POSITIONS_IDS;
    wrong.dtype = POSENC_F64;
    wrong.ids = table;
    REFUSE(ADD(&t, 0, &wrong, NULL, &out), ARGUMENT, "positions.dtype is POSENC_F64|integers",
           memory);
#undef ADD
}

static void test_refused_rows(void **state)
{
    static int64_t tokens[4] = {1, 2, 3, 4}, rows[5];

    (void)state;
#define ROW_NUMBERS(t, b, n, pad, past, r) posenc_learned_rows(t, b, n, pad, past, r, error)
    REFUSE(ROW_NUMBERS(NULL, 1, 4, 1, 0, rows), ARGUMENT, "tokens is NULL", rows);
    REFUSE(ROW_NUMBERS(tokens, 1, 4, 1, 0, NULL), ARGUMENT, "rows is NULL", rows);
    REFUSE(ROW_NUMBERS(tokens, 1, 4, -1, 0, rows), ARGUMENT, "padding is -1", rows);
    REFUSE(ROW_NUMBERS(tokens, 1, 4, 1, -1, rows), ARGUMENT, "past is -1", rows);
    REFUSE(ROW_NUMBERS(tokens, 1, (size_t)1 << 32, 1, 0, rows), ARGUMENT, "count is 4294967296",
           rows);
    REFUSE(ROW_NUMBERS(tokens, SIZE_MAX, 4, 1, 0, rows), ARGUMENT, "batch is|product", rows);
    REFUSE(ROW_NUMBERS(rows + 1, 1, 4, 1, 0, rows), OVERLAP, "rows|tokens|share", rows);
    test_ok(posenc_learned_rows(NULL, 0, 4, 1, 0, NULL, NULL), NULL);
    /* Rows without tokens are not counted through one by one. */
    test_ok(posenc_learned_rows(NULL, SIZE_MAX, 0, 1, 0, NULL, NULL), NULL);
#undef ROW_NUMBERS
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_tokens), cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_sums),           cmocka_unit_test(test_refused_sums),
        cmocka_unit_test(test_refused_rows),   cmocka_unit_test(test_batches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
