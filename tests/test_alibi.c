/* SPDX-License-Identifier: MIT */
/* ALiBi slopes: nearest doubles, head ranges, every wrong argument. */
#include "support/numbers.h"
#include "support/refuse.h"

#include <math.h>

enum { ARGUMENT = POSENC_ERROR_ARGUMENT };

/* Every slope is the stored one, and a range of heads holds the same bits as all of them. */
static void test_stored(void **state)
{
    char id[64];
    size_t n = 0;

    (void)state;
    for (; test_number_id("nearest.txt", "slopes", n, id, sizeof id); n++) {
        double heads[2], expected[512], slopes[512], part[512];
        size_t count = test_numbers("nearest.txt", id, "slopes", expected, 512);
        posenc_error error = {0, ""};

        test_numbers("nearest.txt", id, "heads", heads, 2);
        assert_int_equal(count, (size_t)heads[0]);
        test_ok(posenc_alibi_slopes(slopes, 0, (int64_t)count, (int64_t)count, heads[1], &error),
                &error);
        for (size_t k = 0; k < count; k++) {
            if (slopes[k] != expected[k]) {
                fail_msg("%s, head %zu: %a instead of %a", id, k, slopes[k], expected[k]);
            }
        }
        for (size_t k = 0; k < count; k++) {
            test_ok(posenc_alibi_slopes(part, (int64_t)k, (int64_t)(count - k), (int64_t)count,
                                        heads[1], &error), &error);
            assert_memory_equal(part, slopes + k, (count - k) * sizeof *part);
        }
    }
    assert_int_equal(n, 22);
}

/* Powers of two stay exact for the most heads, and nothing beyond `count` is written. */
static void test_edges(void **state)
{
    double slopes[2] = {-1, -1};

    (void)state;
    test_ok(posenc_alibi_slopes(slopes, 65535, 1, 65536, 64, NULL), NULL);
    assert_true(slopes[0] == 0x1p-64 && slopes[1] == -1);
    test_ok(posenc_alibi_slopes(slopes, 8191, 1, 65536, 8, NULL), NULL);
    assert_true(slopes[0] == 0.5 && slopes[1] == -1);
    test_ok(posenc_alibi_slopes(NULL, 3, 0, 3, 8, NULL), NULL);
}

static void test_refusals(void **state)
{
    double slopes[4], *odd = (double *)(void *)((char *)slopes + 4);

    (void)state;
    REFUSE(posenc_alibi_slopes(NULL, 0, 4, 4, 8, error), ARGUMENT, "slopes is NULL", slopes);
    if (_Alignof(double) == 8)
        REFUSE(posenc_alibi_slopes(odd, 0, 2, 4, 8, error), ARGUMENT, "slopes|aligned|8", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 0, 0, 0, 8, error), ARGUMENT, "heads is 0|1..65536", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 0, 4, -4, 8, error), ARGUMENT, "heads is -4", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 0, 4, 65537, 8, error), ARGUMENT, "heads is 65537", slopes);
    REFUSE(posenc_alibi_slopes(slopes, -1, 4, 4, 8, error), ARGUMENT, "first is -1|(4)", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 5, 0, 4, 8, error), ARGUMENT, "first is 5|(4)", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 0, -1, 4, 8, error), ARGUMENT, "count is -1|(4)", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 1, 4, 4, 8, error), ARGUMENT, "count is 4|(3)", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 1, INT64_MAX, 4, 8, error), ARGUMENT, "count is", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 0, 4, 4, 0, error), ARGUMENT, "max_bias is 0|> 0", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 0, 4, 4, -8, error), ARGUMENT, "max_bias is -8", slopes);
    REFUSE(posenc_alibi_slopes(slopes, 0, 4, 4, 64.5, error), ARGUMENT, "max_bias is 64.5|64",
           slopes);
    REFUSE(posenc_alibi_slopes(slopes, 0, 4, 4, (double)NAN, error), ARGUMENT, "max_bias is nan",
           slopes);
    REFUSE(posenc_alibi_slopes(slopes, 0, 4, 4, (double)INFINITY, error), ARGUMENT,
           "max_bias is inf", slopes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
