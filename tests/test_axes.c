/* SPDX-License-Identifier: MIT */
/* Axis maps: stored patterns, the rules of each pattern, every wrong argument. */
#include "support/numbers.h"
#include "support/refuse.h"

enum { MAX_PAIRS = 32768, ARGUMENT = POSENC_ERROR_ARGUMENT };

/* The map as letters, a letter an axis, must be `expected`. */
static void check_letters(int32_t pattern, const int32_t *section, size_t sections,
                          const char *letters, const char *expected)
{
    int32_t axes[128];
    size_t pairs = strlen(expected);
    posenc_error error = {0, ""};

    test_ok(posenc_axis_map(axes, pairs, pattern, section, sections, &error), &error);
    for (size_t i = 0; i < pairs; i++) {
        if (letters[axes[i]] != expected[i]) {
            fail_msg("pattern %d, pair %zu: %c instead of %c", pattern, i, letters[axes[i]],
                     expected[i]);
        }
    }
}

/* B31-b. */
static void test_interleaved(void **state)
{
    static const int32_t first[] = {11, 11, 10}, second[] = {24, 20, 20};

    (void)state;
    check_letters(POSENC_AXES_INTERLEAVED, first, 3, "THW", "THWTHWTHWTHWTHWTHWTHWTHWTHWTHWTH");
    check_letters(POSENC_AXES_INTERLEAVED, second, 3, "THW",
                  "THWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTTTT");
}

/* B31-e: sums, zeros at the end, a negative section. */
static void test_sums(void **state)
{
    static const int32_t three[] = {4, 2, 2, 0}, nine[] = {4, 3, 2}, text[] = {8, 0, 0};
    static const int32_t negative[] = {-1, 5, 4}, seven[] = {3, 2, 2};
    int32_t axes[8];

    (void)state;
    check_letters(POSENC_AXES_SECTIONS, three, 3, "THW", "TTTTHHWW");
    check_letters(POSENC_AXES_SECTIONS, three, 4, "THW", "TTTTHHWW");
    check_letters(POSENC_AXES_SECTIONS, text, 3, "THW", "TTTTTTTT");
    REFUSE(posenc_axis_map(axes, 8, POSENC_AXES_SECTIONS, nine, 3, error), ARGUMENT,
           "section|sums to 9|pairs (8)", axes);
    REFUSE(posenc_axis_map(axes, 8, POSENC_AXES_SECTIONS, seven, 3, error), ARGUMENT,
           "section|sums to 7|pairs (8)", axes);
    REFUSE(posenc_axis_map(axes, 8, POSENC_AXES_SECTIONS, negative, 3, error), ARGUMENT,
           "section[0] is -1|>= 0", axes);
}

static void test_patterns(void **state)
{
    static const int32_t one[] = {5}, four[] = {1, 2, 3, 1}, holes[] = {0, 2, 0, 3};
    static const int32_t ernie[] = {3, 3, 2, 0}, short_first[] = {1, 3, 3, 0};
    static const int32_t qwen3[] = {24, 20, 20, 0}, first_least[] = {16, 24, 24};
    static const int32_t even[] = {11, 11, 10};

    (void)state;
    check_letters(POSENC_AXES_SECTIONS, one, 1, "T", "TTTTT");
    check_letters(POSENC_AXES_SECTIONS, four, 4, "PWHT", "PWWHHHT");
    check_letters(POSENC_AXES_SECTIONS, holes, 4, "PWHT", "WWTTT");
    check_letters(POSENC_AXES_ERNIE, ernie, 3, "THW", "HWHWHWTT");
    check_letters(POSENC_AXES_ERNIE, ernie, 4, "THW", "HWHWHWTT");
    check_letters(POSENC_AXES_INTERLEAVED, short_first, 4, "THW", "THWTHWT");
    check_letters(POSENC_AXES_INTERLEAVED_GGML, short_first, 3, "THWx", "THWxHWx");
    check_letters(POSENC_AXES_INTERLEAVED_GGML, qwen3, 4, "THWx",
                  "THWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTxxT");
    check_letters(POSENC_AXES_INTERLEAVED_GGML, first_least, 3, "THWx",
                  "THWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWTHWxHWxHWxHWxHWxHWx");
    check_letters(POSENC_AXES_INTERLEAVED_GGML, even, 3, "THWx",
                  "THWTHWTHWTHWTHWTHWTHWTHWTHWTHWTH");
}

/* Maps that transformers' own rotary classes turned out to have. */
static void test_stored(void **state)
{
    static const char file[] = "builders_transformers5.txt";
    char id[64];
    size_t n = 0;

    (void)state;
    for (; test_number_id(file, "axis_of_pair", n, id, sizeof id); n++) {
        double section[4], pattern, expected[128];
        int32_t sizes[4], axes[128];
        size_t sections = test_numbers(file, id, "section", section, 4);
        size_t pairs = test_numbers(file, id, "axis_of_pair", expected, 128);
        posenc_error error = {0, ""};

        test_numbers(file, id, "pattern", &pattern, 1);
        for (size_t a = 0; a < sections; a++) sizes[a] = (int32_t)section[a];
        test_ok(posenc_axis_map(axes, pairs, (int32_t)pattern, sizes, sections, &error), &error);
        for (size_t i = 0; i < pairs; i++) assert_int_equal(axes[i], (int32_t)expected[i]);
    }
    assert_int_equal(n, 7);
}

static void test_largest(void **state)
{
    static int32_t axes[MAX_PAIRS];
    static const int32_t section[] = {MAX_PAIRS - 2, 1, 1};

    (void)state;
    test_ok(posenc_axis_map(axes, MAX_PAIRS, POSENC_AXES_SECTIONS, section, 3, NULL), NULL);
    assert_int_equal(axes[MAX_PAIRS - 3], 0);
    assert_int_equal(axes[MAX_PAIRS - 2], 1);
    assert_int_equal(axes[MAX_PAIRS - 1], 2);
}

static void test_refusals(void **state)
{
    static const int32_t good[] = {4, 2, 2}, four[] = {2, 2, 2, 2}, uneven[] = {3, 2, 3};
    static const int32_t large[] = {INT32_MAX, INT32_MAX, 10};
    int32_t axes[16];
    const int32_t *odd = (const int32_t *)(const void *)((const char *)good + 1);

    (void)state;
    memcpy(axes, good, sizeof good);
    REFUSE(posenc_axis_map(NULL, 8, 1, good, 3, error), ARGUMENT, "axis_of_pair is NULL", axes);
    REFUSE(posenc_axis_map(axes, 8, 1, NULL, 3, error), ARGUMENT, "section is NULL", axes);
    REFUSE(posenc_axis_map(axes, 8, 1, odd, 3, error), ARGUMENT, "section|aligned|4", axes);
    REFUSE(posenc_axis_map((int32_t *)(void *)((char *)axes + 2), 8, 1, good, 3, error), ARGUMENT,
           "axis_of_pair|aligned|4", axes);
    REFUSE(posenc_axis_map(axes, 0, 1, good, 3, error), ARGUMENT, "pairs is 0|1..32768", axes);
    REFUSE(posenc_axis_map(axes, MAX_PAIRS + 1, 1, good, 3, error), ARGUMENT,
           "pairs is 32769|1..32768", axes);
    REFUSE(posenc_axis_map(axes, SIZE_MAX, 1, good, 3, error), ARGUMENT, "pairs is|1..32768",
           axes);
    REFUSE(posenc_axis_map(axes, 8, 0, good, 3, error), ARGUMENT, "pattern is 0", axes);
    REFUSE(posenc_axis_map(axes, 8, 5, good, 3, error), ARGUMENT, "pattern is 5", axes);
    REFUSE(posenc_axis_map(axes, 8, -1, good, 3, error), ARGUMENT, "pattern is -1", axes);
    REFUSE(posenc_axis_map(axes, 8, 1, good, 0, error), ARGUMENT, "sections is 0|1..4", axes);
    REFUSE(posenc_axis_map(axes, 8, 1, good, 5, error), ARGUMENT, "sections is 5|1..4", axes);
    REFUSE(posenc_axis_map(axes, 8, 1, large, 3, error), ARGUMENT, "sums to 4294967304|(8)",
           axes);
    for (int32_t pattern = POSENC_AXES_INTERLEAVED; pattern <= POSENC_AXES_ERNIE; pattern++) {
        REFUSE(posenc_axis_map(axes, 8, pattern, four, 4, error), ARGUMENT,
               "sections is 4|must be 3", axes);
        REFUSE(posenc_axis_map(axes, 4, pattern, four, 2, error), ARGUMENT,
               "sections is 2|must be 3", axes);
    }
    REFUSE(posenc_axis_map(axes, 8, POSENC_AXES_ERNIE, uneven, 3, error), ARGUMENT,
           "section[0] is 3|section[1] (2)", axes);
    REFUSE(posenc_axis_map(axes, 8, 1, axes + 7, 3, error), POSENC_ERROR_OVERLAP,
           "axis_of_pair|section|share memory", axes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interleaved),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
