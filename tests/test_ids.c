/* SPDX-License-Identifier: MIT */
/* Ids of masks, packed and split sequences, grids and dual chunks; every wrong argument. */
#include "support/numbers.h"
#include "support/refuse.h"

#include <stdio.h>

enum { ARGUMENT = POSENC_ERROR_ARGUMENT, POSITION = POSENC_ERROR_POSITION };

static const char file[] = "builders_transformers5.txt";
static const int64_t end = INT64_C(1) << 31;

/* What transformers makes of the same mask; it gives padding position 0. */
static void test_mask(void **state)
{
    double mask[30], expected[30];
    uint8_t bytes[30];
    int64_t ids[30];
    posenc_error error = {0, ""};

    (void)state;
    assert_int_equal(test_numbers(file, "mask", "mask", mask, 30), 30);
    assert_int_equal(test_numbers(file, "mask", "ids", expected, 30), 30);
    for (int i = 0; i < 30; i++) bytes[i] = mask[i] != 0 ? (uint8_t)(i + 1) : 0;
    test_ok(posenc_ids_from_mask(bytes, 5, 6, 0, ids, &error), &error);
    for (int i = 0; i < 30; i++) assert_int_equal(ids[i], (int64_t)expected[i]);
    test_ok(posenc_ids_from_mask(bytes, 5, 6, -end, ids, &error), &error);
    for (int i = 0; i < 30; i++) assert_int_equal(ids[i], bytes[i] ? (int64_t)expected[i] : -end);
    test_ok(posenc_ids_from_mask(NULL, 0, 6, 0, NULL, &error), &error);
    test_ok(posenc_ids_from_mask(NULL, 6, 0, 0, NULL, &error), &error);
    test_ok(posenc_ids_from_mask(NULL, SIZE_MAX, 0, 0, NULL, &error), &error); /* at once */
}

static void test_bad_mask(void **state)
{
    const uint8_t mask[4] = {1, 1, 0, 1};
    int64_t ids[4], *odd = (int64_t *)(void *)((char *)ids + 4);

    (void)state;
    REFUSE(posenc_ids_from_mask(NULL, 2, 2, 0, ids, error), ARGUMENT, "mask is NULL", ids);
    REFUSE(posenc_ids_from_mask(mask, 2, 2, 0, NULL, error), ARGUMENT, "ids is NULL", ids);
    if (_Alignof(int64_t) == 8)
        REFUSE(posenc_ids_from_mask(mask, 1, 2, 0, odd, error), ARGUMENT, "ids|aligned|8", ids);
    REFUSE(posenc_ids_from_mask(mask, 2, 2, end, ids, error), POSITION, "padding is 2147483648",
           ids);
    REFUSE(posenc_ids_from_mask(mask, 2, 2, -end - 1, ids, error), POSITION, "padding is -", ids);
    REFUSE(posenc_ids_from_mask(mask, 1, (size_t)end + 1, 0, ids, error), ARGUMENT,
           "tokens is 2147483649|2^31", ids);
    REFUSE(posenc_ids_from_mask(mask, SIZE_MAX, 2, 0, ids, error), ARGUMENT,
           "batch is|tokens 2|address space", ids);
    REFUSE(posenc_ids_from_mask(mask, SIZE_MAX / 2, 2, 0, ids, error), ARGUMENT,
           "ids|address space", ids);
    REFUSE(posenc_ids_from_mask((const uint8_t *)ids + 31, 1, 4, 0, ids, error),
           POSENC_ERROR_OVERLAP, "ids|mask|share memory", ids);
}

static void test_packed(void **state)
{
    static const int64_t offsets[] = {0, 3, 3, 5}, starts[] = {10, 7, -2}, none[] = {0};
    static const int64_t plain[] = {0, 1, 2, 0, 1}, moved[] = {10, 11, 12, -2, -1};
    const int64_t edge[] = {0, 1}, last[] = {end - 1};
    int64_t ids[5];

    (void)state;
    test_ok(posenc_ids_packed(offsets, 3, NULL, ids, 5, NULL), NULL);
    assert_memory_equal(ids, plain, sizeof ids);
    test_ok(posenc_ids_packed(offsets, 3, starts, ids, 5, NULL), NULL);
    assert_memory_equal(ids, moved, sizeof ids);
    test_ok(posenc_ids_packed(none, 0, NULL, NULL, 0, NULL), NULL);
    test_ok(posenc_ids_packed(edge, 1, last, ids, 1, NULL), NULL);
    assert_int_equal(ids[0], end - 1);
}

static void test_bad_packed(void **state)
{
    static const int64_t offsets[] = {0, 3, 4}, later[] = {1, 3, 4}, falls[] = {0, 3, 2};
    const int64_t full[] = {0, end, end + 5};
    const int64_t far[] = {0, end + 1}, high[] = {0, end - 1}, low[] = {-end - 1, 0};
    const int64_t beyond[] = {0, end}, wrap[] = {0, INT64_MAX}, bottom[] = {-end};
    int64_t ids[8];

    (void)state;
    REFUSE(posenc_ids_packed(NULL, 2, NULL, ids, 4, error), ARGUMENT, "offsets is NULL", ids);
    REFUSE(posenc_ids_packed(NULL, 0, NULL, NULL, 0, error), ARGUMENT, "offsets is NULL", ids);
    REFUSE(posenc_ids_packed(offsets, 2, NULL, NULL, 4, error), ARGUMENT, "ids is NULL", ids);
    REFUSE(posenc_ids_packed(offsets, SIZE_MAX, NULL, ids, 4, error), ARGUMENT, "sequences", ids);
    REFUSE(posenc_ids_packed(offsets, SIZE_MAX - 1, NULL, ids, 4, error), ARGUMENT,
           "offsets|address space", ids);
    REFUSE(posenc_ids_packed(offsets, 2, NULL, ids, SIZE_MAX, error), ARGUMENT,
           "ids|address space", ids);
    REFUSE(posenc_ids_packed(later, 2, NULL, ids, 4, error), ARGUMENT, "offsets[0] is 1|0", ids);
    REFUSE(posenc_ids_packed(falls, 2, NULL, ids, 4, error), ARGUMENT, "offsets[2] is 2|>= 3",
           ids);
    REFUSE(posenc_ids_packed(offsets, 2, NULL, ids, 5, error), ARGUMENT, "tokens is 5|(4)", ids);
    REFUSE(posenc_ids_packed(offsets, 2, NULL, ids, 3, error), ARGUMENT, "tokens is 3|(4)", ids);
    REFUSE(posenc_ids_packed(full, 2, NULL, ids, 8, error), ARGUMENT, "tokens is 8|(2147483653)",
           ids);
    REFUSE(posenc_ids_packed(far, 1, NULL, ids, 8, error), POSITION,
           "sequence 0|2147483649 tokens|below 2^31", ids);
    REFUSE(posenc_ids_packed(wrap, 1, bottom, ids, 8, error), POSITION, "sequence 0|below 2^31",
           ids);
    REFUSE(posenc_ids_packed(falls, 1, high + 1, ids, 3, error), POSITION,
           "sequence 0 has 3 tokens from position 2147483647", ids);
    REFUSE(posenc_ids_packed(offsets, 2, low, ids, 4, error), POSITION, "starts[0] is -", ids);
    REFUSE(posenc_ids_packed(offsets, 2, beyond, ids, 4, error), POSITION,
           "starts[1] is 2147483648", ids);
    REFUSE(posenc_ids_packed(ids + 3, 2, NULL, ids, 4, error), POSENC_ERROR_OVERLAP,
           "ids|offsets|share memory", ids);
    REFUSE(posenc_ids_packed(offsets, 2, ids + 3, ids, 4, error), POSENC_ERROR_OVERLAP,
           "ids|starts|share memory", ids);
}

/* Two chunks a rank, one from each end, so that causal work is equal: together all, each once. */
static void test_context_parallel(void **state)
{
    static const int64_t second_of_two[] = {2, 3, 4, 5};
    int64_t ids[24];

    (void)state;
    test_ok(posenc_ids_context_parallel(8, 1, 2, ids, 4, NULL), NULL);
    assert_memory_equal(ids, second_of_two, sizeof second_of_two);
    for (int64_t ranks = 1; ranks <= 4; ranks++) {
        int seen[24] = {0};

        for (int64_t rank = 0; rank < ranks; rank++) {
            int64_t sum = 0, count = 24 / ranks;

            test_ok(posenc_ids_context_parallel(24, rank, ranks, ids, (size_t)count, NULL), NULL);
            for (int64_t t = 0; t < count; t++) {
                seen[ids[t]]++;
                sum += ids[t];
            }
            assert_int_equal(sum, 23 * 24 / 2 / ranks);
        }
        for (int t = 0; t < 24; t++) assert_int_equal(seen[t], 1);
    }
    test_ok(posenc_ids_context_parallel(0, 0, 3, NULL, 0, NULL), NULL);
}

static void test_bad_context_parallel(void **state)
{
    int64_t ids[8], *odd = (int64_t *)(void *)((char *)ids + 4);

    (void)state;
    REFUSE(posenc_ids_context_parallel(8, 0, 0, ids, 4, error), ARGUMENT, "ranks is 0", ids);
    REFUSE(posenc_ids_context_parallel(8, 0, INT64_MAX, ids, 4, error), ARGUMENT, "ranks is", ids);
    REFUSE(posenc_ids_context_parallel(8, -1, 2, ids, 4, error), ARGUMENT, "rank is -1|(1)", ids);
    REFUSE(posenc_ids_context_parallel(8, 2, 2, ids, 4, error), ARGUMENT, "rank is 2|(1)", ids);
    REFUSE(posenc_ids_context_parallel(6, 0, 2, ids, 3, error), ARGUMENT,
           "tokens is 6|multiple of 2 ranks (4)", ids);
    REFUSE(posenc_ids_context_parallel(-8, 0, 2, ids, 4, error), ARGUMENT, "tokens is -8", ids);
    REFUSE(posenc_ids_context_parallel(end + 4, 0, 2, ids, 4, error), ARGUMENT,
           "tokens is 2147483652", ids);
    REFUSE(posenc_ids_context_parallel(8, 0, 2, ids, 8, error), ARGUMENT, "count is 8|(4)", ids);
    REFUSE(posenc_ids_context_parallel(8, 0, 2, ids, 3, error), ARGUMENT, "count is 3|(4)", ids);
    REFUSE(posenc_ids_context_parallel(8, 0, 2, NULL, 4, error), ARGUMENT, "ids is NULL", ids);
    if (_Alignof(int64_t) == 8)
        REFUSE(posenc_ids_context_parallel(8, 0, 2, odd, 4, error), ARGUMENT, "ids|aligned", ids);
}

static void check_grid(int64_t rows, int64_t columns, int64_t merge, int32_t coordinates,
                       const double *expected)
{
    double ids[24];
    size_t count = (size_t)(rows * columns);

    test_ok(posenc_ids_grid(rows, columns, merge, coordinates, ids, count, NULL), NULL);
    for (size_t i = 0; i < 2 * count; i++) {
        if (ids[i] != expected[i]) fail_msg("id %zu: %.17g, not %.17g", i, ids[i], expected[i]);
    }
}

static void test_grid(void **state)
{
    static const double plain[] = {0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2};
    static const double merged[] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3,
                                    0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
    static const double centres[] = {-0.5, -0.5, -0.5, 0.5, 0.5, 0.5,
                                     -2.0 / 3, 0, 2.0 / 3, -2.0 / 3, 0, 2.0 / 3};
    static const double edges[] = {-1, -1, -1, -1, -1, -1.0 / 3, 1.0 / 3, 1};
    double wide[32], one[2];

    (void)state;
    check_grid(2, 3, 1, POSENC_GRID_INDEX, plain);
    check_grid(2, 3, 1, POSENC_GRID_CENTRES, centres);
    check_grid(1, 4, 1, POSENC_GRID_EDGES, edges);
    test_ok(posenc_ids_grid(4, 4, 2, 0, wide, 16, NULL), NULL);
    assert_memory_equal(wide, merged, sizeof merged);
    test_ok(posenc_ids_grid(1, 1, 1, POSENC_GRID_CENTRES, one, 1, NULL), NULL);
    assert_true(one[0] == 0 && one[1] == 0);
    test_ok(posenc_ids_grid(1, 1, 1, POSENC_GRID_EDGES, one, 1, NULL), NULL);
    assert_true(one[0] == -1 && one[1] == -1);
}

static void test_bad_grid(void **state)
{
    double ids[24], *odd = (double *)(void *)((char *)ids + 4);

    (void)state;
    REFUSE(posenc_ids_grid(0, 3, 1, 0, ids, 0, error), ARGUMENT, "rows is 0|1..2^31", ids);
    REFUSE(posenc_ids_grid(end + 1, 3, 1, 0, ids, 6, error), ARGUMENT, "rows is 2147483649", ids);
    REFUSE(posenc_ids_grid(2, -3, 1, 0, ids, 6, error), ARGUMENT, "columns is -3|1..2^31", ids);
    REFUSE(posenc_ids_grid(2, INT64_MAX, 1, 0, ids, 6, error), ARGUMENT, "columns is", ids);
    REFUSE(posenc_ids_grid(2, 3, 0, 0, ids, 6, error), ARGUMENT, "merge is 0|>= 1", ids);
    REFUSE(posenc_ids_grid(2, 3, 2, 0, ids, 6, error), ARGUMENT, "merge is 2|columns (3)", ids);
    REFUSE(posenc_ids_grid(3, 2, 2, 0, ids, 6, error), ARGUMENT, "merge is 2|rows (3)", ids);
    REFUSE(posenc_ids_grid(2, 3, 1, 3, ids, 6, error), ARGUMENT, "coordinates is 3", ids);
    REFUSE(posenc_ids_grid(2, 3, 1, -1, ids, 6, error), ARGUMENT, "coordinates is -1", ids);
    REFUSE(posenc_ids_grid(2, 3, 1, 0, ids, 12, error), ARGUMENT, "count is 12|(6)", ids);
    REFUSE(posenc_ids_grid(2, 3, 1, 0, ids, 5, error), ARGUMENT, "count is 5|(6)", ids);
    REFUSE(posenc_ids_grid(2, 3, 1, 0, NULL, 6, error), ARGUMENT, "ids is NULL", ids);
    if (_Alignof(double) == 8)
        REFUSE(posenc_ids_grid(2, 3, 1, 0, odd, 6, error), ARGUMENT, "ids|aligned|8", ids);
    REFUSE(posenc_ids_grid(end, end, 1, 0, ids, (size_t)end * (size_t)end, error), ARGUMENT,
           "address space", ids);
}

/* The positions that vLLM's dual chunk rotation turned out to use. */
static void test_dual_chunk(void **state)
{
    char id[64], name[16];
    size_t n = 0;

    (void)state;
    for (; test_number_id(file, "chunk", n, id, sizeof id); n++) {
        double sizes[2], expected[300];
        int64_t positions[300], ids[300];

        test_numbers(file, id, "chunk", sizes, 2);
        for (int32_t kind = 1; kind <= 5; kind++) {
            for (int i = 0; i < 300; i++) positions[i] = i;
            snprintf(name, sizeof name, "kind%d", (int)kind);
            assert_int_equal(test_numbers(file, id, name, expected, 300), 300);
            test_ok(posenc_ids_dual_chunk(kind, (int64_t)sizes[0], (int64_t)sizes[1], positions,
                                          ids, 300, NULL), NULL);
            for (int i = 0; i < 300; i++) assert_int_equal(ids[i], (int64_t)expected[i]);
            test_ok(posenc_ids_dual_chunk(kind, (int64_t)sizes[0], (int64_t)sizes[1], positions,
                                          positions, 300, NULL), NULL);
            assert_memory_equal(positions, ids, sizeof ids);
        }
    }
    assert_int_equal(n, 4);
    test_ok(posenc_ids_dual_chunk(1, 8, 0, NULL, NULL, 0, NULL), NULL);
}

static void test_bad_dual_chunk(void **state)
{
    const int64_t positions[] = {0, 5}, negative[] = {3, -1}, high[] = {end, 1};
    int64_t ids[4], *odd = (int64_t *)(void *)((char *)ids + 4);

    (void)state;
    REFUSE(posenc_ids_dual_chunk(0, 8, 2, positions, ids, 2, error), ARGUMENT, "kind is 0", ids);
    REFUSE(posenc_ids_dual_chunk(6, 8, 2, positions, ids, 2, error), ARGUMENT, "kind is 6", ids);
    REFUSE(posenc_ids_dual_chunk(1, 0, 0, positions, ids, 2, error), ARGUMENT, "chunk is 0", ids);
    REFUSE(posenc_ids_dual_chunk(1, end, 2, positions, ids, 2, error), ARGUMENT,
           "chunk is 2147483648", ids);
    REFUSE(posenc_ids_dual_chunk(1, 8, -1, positions, ids, 2, error), ARGUMENT,
           "local is -1|(7)", ids);
    REFUSE(posenc_ids_dual_chunk(1, 8, 8, positions, ids, 2, error), ARGUMENT, "local is 8|(7)",
           ids);
    REFUSE(posenc_ids_dual_chunk(1, 8, 2, NULL, ids, 2, error), ARGUMENT, "positions is NULL",
           ids);
    REFUSE(posenc_ids_dual_chunk(1, 8, 2, positions, NULL, 2, error), ARGUMENT, "ids is NULL",
           ids);
    if (_Alignof(int64_t) == 8) {
        REFUSE(posenc_ids_dual_chunk(1, 8, 2, odd, ids, 2, error), ARGUMENT, "positions|aligned",
               ids);
        REFUSE(posenc_ids_dual_chunk(1, 8, 2, positions, odd, 2, error), ARGUMENT, "ids|aligned",
               ids);
    }
    REFUSE(posenc_ids_dual_chunk(1, 8, 2, positions, ids, SIZE_MAX, error), ARGUMENT,
           "ids|address space", ids);
    REFUSE(posenc_ids_dual_chunk(1, 8, 2, negative, ids, 2, error), POSITION,
           "positions[1] is -1", ids);
    REFUSE(posenc_ids_dual_chunk(1, 8, 2, high, ids, 2, error), POSITION,
           "positions[0] is 2147483648", ids);
    REFUSE(posenc_ids_dual_chunk(1, 8, 2, ids + 1, ids, 2, error), POSENC_ERROR_OVERLAP,
           "ids|positions|share memory", ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_bad_mask),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_bad_packed),
        cmocka_unit_test(test_context_parallel),
        cmocka_unit_test(test_bad_context_parallel),
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_bad_grid),
        cmocka_unit_test(test_dual_chunk),
        cmocka_unit_test(test_bad_dual_chunk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
