/* SPDX-License-Identifier: MIT */
/* Attention with options: truth, and equal bits on every ISA. */
#include "attention_options.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_support.h"
#include "support/test.h"

/* Each option alone, and with what is random otherwise: within the bound that accuracy.md derives.
 * The worst share of the bound is printed for each. */
static void each_option_is_within_its_bound(void **state)
{
    const int calls = test_quick() ? 4 : 24;
    char text[200];
    (void)state;
    for (int option = 0; option < OPTION_COUNT; option++) {
        long double worst = 0;
        for (int i = 0; i < (1u << option == WITH_LONG ? 3 : calls); i++) {
            struct options o;
            unsigned with = 1u << option | WITH_LSE | (i % 2 ? WITH_WEIGHTS : 0);
            options_init(&o, with, (uint64_t)(100 * option + i));
            options_run(&o, POSENC_ISA_DEFAULT);
            worst = fmaxl(worst, truth_worst(&o.call));
            options_free(&o);
        }
        print_message("%-12s %.3Lf of the bound\n", options_text(1u << option, text, 200), worst);
        if (!(worst <= 1))
            fail_msg("%s: error is %.3Lf of its bound", options_text(1u << option, text, 200),
                     worst);
    }
}

/* Terms by place, with keys that begin anywhere: lse also tells what shifts a whole row. */
static void terms_by_place_are_within_their_bound(void **state)
{
    static const unsigned terms[] = {WITH_ALIBI, WITH_ALIBI, WITH_T5, WITH_DEBERTA};
    char text[200];
    (void)state;
    for (int i = 0; i < (test_quick() ? 80 : 160); i++) {
        struct options o;
        unsigned with = terms[i % 4] | WITH_PLACES | WITH_LSE | (i % 3 ? WITH_COUNTS : 0) |
                        (i % 5 ? 0 : WITH_PACKED);
        options_init(&o, with, (uint64_t)(5000 + i));
        options_run(&o, POSENC_ISA_DEFAULT);
        long double ratio = truth_worst(&o.call);
        options_free(&o);
        if (!(ratio <= 1))
            fail_msg("call %d, %s: error is %.3Lf of its bound", i,
                     options_text(with, text, sizeof(text)), ratio);
    }
}

static void any_options_are_within_their_bound(void **state)
{
    const int calls = test_quick() ? 40 : 400;
    uint64_t seed = 5;
    long double worst = 0;
    char text[200];
    (void)state;
    for (int i = 0; i < calls; i++) {
        struct options o;
        unsigned with = options_choose(&seed);
        options_init(&o, with, seed);
        options_run(&o, POSENC_ISA_DEFAULT);
        long double ratio = truth_worst(&o.call);
        options_free(&o);
        worst = fmaxl(worst, ratio);
        if (!(ratio <= 1))
            fail_msg("call %d, %s: error is %.3Lf of its bound", i,
                     options_text(with, text, sizeof(text)), ratio);
    }
    print_message("together     %.3Lf of the bound\n", worst);
}

static void any_options_have_the_bits_of_the_oracle(void **state)
{
    const int calls = test_quick() ? 60 : 600;
    uint64_t seed = 6;
    char text[200];
    (void)state;
    for (int i = 0; i < calls; i++) {
        struct options o;
        unsigned with = options_choose(&seed);
        options_init(&o, with, seed);
        size_t bytes = options_result_bytes(&o);
        char *expected = malloc(2 * bytes), *result = expected + bytes;
        assert_non_null(expected);
        options_run(&o, POSENC_ISA_SCALAR);
        options_results(&o, expected);
        options_run(&o, POSENC_ISA_DEFAULT);
        options_results(&o, result);
        if (memcmp(expected, result, bytes) != 0)
            fail_msg("call %d, %s: other bits", i, options_text(with, text, sizeof(text)));
        free(expected);
        options_free(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_is_within_its_bound),
        cmocka_unit_test(terms_by_place_are_within_their_bound),
        cmocka_unit_test(any_options_are_within_their_bound),
        cmocka_unit_test(any_options_have_the_bits_of_the_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
