/* SPDX-License-Identifier: MIT */
/* DeBERTa: exact buckets and index maps, against transformers too. */
#include "bias_support.h"
#include "support/numbers.h"

#include <stdio.h>

enum { RUN = 4096 };
static double stored[RUN];

static int32_t bucket(int32_t buckets, int64_t distance, int64_t relative)
{
    posenc_error error = {0, ""};
    int32_t from = (int32_t)relative, to;

    test_ok(posenc_deberta_buckets(buckets, distance, &from, 1, &to, &error), &error);
    return to;
}

/* Every stored bound: the bucket begins there and nowhere below; signs mirror each other. */
static void test_bounds(void **state)
{
    static char line[8192];
    size_t n = 0, checked = 0;
    FILE *stream = fopen(test_data_path("biases_exact.txt", (char[1024]){0}, 1024), "r");

    (void)state;
    assert_non_null(stream);
    while (fgets(line, sizeof line, stream)) {
        char *rest = strstr(line, "deberta bounds ");

        if (rest != line) continue;
        rest += strlen("deberta bounds ");
        int32_t buckets = (int32_t)strtoll(rest, &rest, 10);
        int64_t distance = strtoll(rest, &rest, 10);
        for (n++; *rest != '\n' && *rest; checked++) {
            int64_t first = strtoll(rest, &rest, 10), from = strtoll(rest, &rest, 10);

            if (from > INT32_MAX) continue;
            assert_true(bucket(buckets, distance, from) >= first);
            if (bucket(buckets, distance, from - 1) >= first)
                fail_msg("%d %lld: bucket %lld begins below %lld", buckets, (long long)distance,
                         (long long)first, (long long)from);
            assert_int_equal(bucket(buckets, distance, -from), -bucket(buckets, distance, from));
        }
    }
    fclose(stream);
    assert_true(n > 80 && checked > 1000);
}

/* Near ones as they are, the first and the last of the logarithmic, and the ends of int32. */
static void test_edges(void **state)
{
    (void)state;
    for (int32_t d = -128; d <= 128; d++) assert_int_equal(bucket(256, 512, d), d);
    assert_int_equal(bucket(256, 512, 129), 129);
    assert_int_equal(bucket(256, 512, 511), 255);
    assert_int_equal(bucket(256, 512, 512), 256); /* not clamped here: the maps do it */
    assert_int_equal(bucket(2, 9, 5), 1);
    assert_int_equal(bucket(3, 9, -5), -1);
    assert_int_equal(bucket(2, 9, 0), 0);
    assert_int_equal(bucket(0, 0, INT32_MIN), INT32_MIN);
    assert_int_equal(bucket(256, 512, INT32_MIN), -bucket(256, 512, INT32_MAX));
    assert_int_equal(bucket(256, 512, INT32_MAX), 1655);
}

/* Every bucket that transformers computed with float32 logarithms. */
static void test_transformers(void **state)
{
    static const char *const ids[] = {"deberta/256", "deberta/32", "deberta/64", "deberta/7"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        double v[2];
        int32_t relative[3001], buckets[3001];

        test_numbers("biases_transformers.txt", ids[i], "settings", v, 2);
        assert_int_equal(test_numbers("biases_transformers.txt", ids[i], "buckets", stored, RUN),
                         3001);
        for (int k = 0; k < 3001; k++) relative[k] = k - 1500;
        test_ok(posenc_deberta_buckets((int32_t)v[0], (int64_t)v[1], relative, 3001, buckets, NULL),
                NULL);
        for (int k = 0; k < 3001; k++) assert_int_equal(buckets[k], (int32_t)stored[k]);
    }
}

/* The indices with which transformers gathers, caught as it does. */
static void test_gathered(void **state)
{
    static const char *const ids[] = {"deberta/log", "deberta/plain"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        double v[3];
        int32_t c2p[1600], p2c[1600];

        test_numbers("biases_transformers.txt", ids[i], "settings", v, 3);
        test_ok(posenc_deberta_maps((int32_t)v[0], (int64_t)v[1], 40, 40, 0, c2p, p2c, NULL), NULL);
        assert_int_equal(test_numbers("biases_transformers.txt", ids[i], "c2p", stored, RUN), 1600);
        for (int k = 0; k < 1600; k++) assert_int_equal(c2p[k], (int32_t)stored[k]);
        assert_int_equal(test_numbers("biases_transformers.txt", ids[i], "p2c", stored, RUN), 1600);
        for (int k = 0; k < 1600; k++) assert_int_equal(p2c[k], (int32_t)stored[k]);
    }
}

static int32_t index_of(int64_t at, int64_t span)
{
    return (int32_t)(at < 0 ? 0 : at < 2 * span ? at : 2 * span - 1);
}

/* Maps are the clamped buckets, for any part of the queries, and nothing beside them is written. */
static void check_maps(int32_t buckets, int64_t distance, int64_t queries, int64_t keys,
                       int64_t offset)
{
    size_t count = (size_t)(queries * keys);
    int32_t *map = malloc((2 * count + 2) * sizeof *map), *p2c = map + count + 1;
    int64_t span = buckets ? buckets : distance;

    assert_non_null(map);
    bias_mark(map, (2 * count + 2) * sizeof *map);
    test_ok(posenc_deberta_maps(buckets, distance, queries, keys, offset, map, p2c, NULL), NULL);
    assert_true(bias_untouched(map + count, 4) && bias_untouched(p2c + count, 4));
    for (size_t k = 0; k < count; k += k % 11 + 1) {
        int64_t relative = offset + (int64_t)k / keys - (int64_t)k % keys;
        int64_t b = bucket(buckets, distance, relative);

        if (map[k] != index_of(b + span, span) || p2c[k] != index_of(-b + span, span))
            fail_msg("%d buckets, relative %d: %d %d", buckets, (int)relative, map[k], p2c[k]);
    }
    int32_t *row = malloc((size_t)keys * sizeof *row);
    assert_non_null(row);
    for (int64_t q = 0; q < queries; q += 7) {
        test_ok(posenc_deberta_maps(buckets, distance, 1, keys, offset + q, row, NULL, NULL), NULL);
        assert_memory_equal(row, map + q * keys, (size_t)keys * sizeof *row);
        test_ok(posenc_deberta_maps(buckets, distance, 1, keys, offset + q, NULL, row, NULL), NULL);
        assert_memory_equal(row, p2c + q * keys, (size_t)keys * sizeof *row);
    }
    free(row);
    free(map);
}

static void test_maps(void **state)
{
    (void)state;
    check_maps(256, 512, 70, 1100, 1030);
    check_maps(33, 100, 13, 40, 0);
    check_maps(2, 3, 5, 9, 4);
    check_maps(0, 24, 65, 70, 3);
    check_maps(8, 20, 3, 2000, -100);
    check_maps(65536, 1000000, 2, 300, 500000);
    test_ok(posenc_deberta_maps(256, 512, 0, 5, 0, NULL, NULL, NULL), NULL);
    test_ok(posenc_deberta_maps(256, 512, 3, 5, 0, NULL, NULL, NULL), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_edges),
        cmocka_unit_test(test_transformers), cmocka_unit_test(test_gathered),
        cmocka_unit_test(test_maps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
