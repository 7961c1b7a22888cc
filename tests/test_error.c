/* SPDX-License-Identifier: MIT */
/* The error formatter against printf, its limits, and the names of status codes. */
#include "error.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void check_double(double x)
{
    char expected[64];
    posenc_error error;
    snprintf(expected, sizeof expected, "[%.9g]", x);
    if (isnan(x)) {
        strcpy(expected, "[nan]");
    }
    assert_int_equal(posenc_fail(&error, POSENC_ERROR_ARGUMENT, "[%g]", x), POSENC_ERROR_ARGUMENT);
    assert_string_equal(error.text, expected);
}

static void doubles_print_like_printf(void **state)
{
    (void)state;
    static const double VALUES[] = {
        0.0, -0.0, 1.0, -1.0, 10.0, 0.1, 0.5, 0.501, 10000.0, 123456789.0, 999999999.0,
        999999999.4, 999999999.6, 1e9, 1e-4, 0.99999e-4, 1e-5, 9.9999999996e-5, 1e100, 1e-100,
        1e300, DBL_MAX, DBL_MIN, DBL_TRUE_MIN, 1.5e-310, INFINITY, -INFINITY, NAN, 0.001,
        100000000.5, 100000001.5, 3.14159265358979, 1e15, 1e16, 2147483648.0, 500000.0};
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        check_double(VALUES[i]);
    }
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        double x;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        memcpy(&x, &bits, sizeof x);
        check_double(x);
    }
    for (int i = -320; i <= 308; i++) {
        check_double(pow(10.0, i));
        check_double(123456789e-8 * pow(10.0, i));
    }
}

static void integers_print_like_printf(void **state)
{
    (void)state;
    static const int64_t VALUES[] = {0, 1, -1, 9, 10, -10, 1234567890123, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        char expected[64];
        posenc_error error;
        snprintf(expected, sizeof expected, "%" PRId64 "|%d", VALUES[i], 5);
        posenc_fail(&error, POSENC_ERROR_ARGUMENT, "%d|%d", VALUES[i], (int64_t)5);
        assert_string_equal(error.text, expected);
    }
}

static void status_and_text_are_stored(void **state)
{
    (void)state;
    posenc_error error;
    assert_int_equal(posenc_fail(&error, POSENC_ERROR_IO, "%s: %d%% of %g, %s", "file", (int64_t)7,
                                 0.25, (const char *)NULL),
                     POSENC_ERROR_IO);
    assert_int_equal(error.code, POSENC_ERROR_IO);
    assert_string_equal(error.text, "file: 7% of 0.25, (null)");
    assert_int_equal(posenc_fail(NULL, POSENC_ERROR_MODEL, "%s", "ignored"), POSENC_ERROR_MODEL);
    posenc_fail(&error, POSENC_ERROR_IO, "ends in %");
    assert_string_equal(error.text, "ends in %");
}

static void text_is_one_line_of_ascii(void **state)
{
    (void)state;
    posenc_error error;
    posenc_fail(&error, POSENC_ERROR_IO, "<%s>", "a\nb\tc\x7f\xc3\xa9\x1b~ ");
    assert_string_equal(error.text, "<a?b?c????~ >");
}

static void long_text_is_cut_and_terminated(void **state)
{
    (void)state;
    char text[1000];
    struct {
        posenc_error error;
        unsigned char guard[16];
    } frame;
    for (size_t length = 240; length < sizeof text; length++) {
        memset(text, 'x', length);
        text[length] = '\0';
        memset(&frame, 0xa5, sizeof frame);
        posenc_fail(&frame.error, POSENC_ERROR_IO, "%s%d%g", text, (int64_t)12345, 0.125);
        size_t whole = length + strlen("123450.125");
        size_t room = sizeof frame.error.text - 1;
        assert_int_equal(strlen(frame.error.text), whole < room ? whole : room);
        for (size_t i = 0; i < sizeof frame.guard; i++) {
            assert_int_equal(frame.guard[i], 0xa5);
        }
    }
}

static void errno_is_left_alone(void **state)
{
    (void)state;
    posenc_error error;
    errno = 77;
    posenc_fail(&error, POSENC_ERROR_IO, "%g %g %d", DBL_TRUE_MIN, DBL_MAX, INT64_MIN);
    assert_int_equal(errno, 77);
}

static void statuses_have_names(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"ok",     "argument", "position", "overlap", "unsupported",
                                        "memory", "io",       "format",   "model"};
    for (int32_t i = 0; i < 9; i++) {
        assert_string_equal(posenc_status_name(i), NAMES[i]);
    }
    assert_string_equal(posenc_status_name(-1), "unknown");
    assert_string_equal(posenc_status_name(9), "unknown");
}

static void version_is_that_of_the_header(void **state)
{
    (void)state;
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", POSENC_VERSION_MAJOR, POSENC_VERSION_MINOR,
             POSENC_VERSION_PATCH);
    assert_string_equal(posenc_version(), expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_print_like_printf),
        cmocka_unit_test(integers_print_like_printf),
        cmocka_unit_test(status_and_text_are_stored),
        cmocka_unit_test(text_is_one_line_of_ascii),
        cmocka_unit_test(long_text_is_cut_and_terminated),
        cmocka_unit_test(errno_is_left_alone),
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(version_is_that_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
