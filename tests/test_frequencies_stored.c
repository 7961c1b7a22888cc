/* SPDX-License-Identifier: MIT */
/* Frequencies and attention factor against stored values: mpmath, models, published examples. */
#include "common.h"
#include "frequencies_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* What a data file says of one set; see tests/make_frequencies.py. */
typedef struct reader {
    FILE *file;
    char name[64];
    posenc_rope_params params;
    int64_t length;
    double shorts[MOST_PAIRS], longs[MOST_PAIRS]; /* LongRoPE's lists */
    int32_t most_apart;                           /* float32 values, in units in the last place */
    long exact, f32, f32_equal, pairs, attention, softmax;
} reader;

static double next_number(reader *in)
{
    double value;
    assert_int_equal(fscanf(in->file, "%lf", &value), 1);
    return value;
}

static void read_set(reader *in)
{
    assert_int_equal(fscanf(in->file, "%63s", in->name), 1);
    int32_t scaling = (int32_t)next_number(in);
    int32_t rotary_dim = (int32_t)next_number(in);
    in->params = parameters(scaling, next_number(in), rotary_dim);
    double *const fields[] = {&in->params.factor, &in->params.original_max_position,
                              &in->params.low_freq_factor, &in->params.high_freq_factor,
                              &in->params.beta_fast, &in->params.beta_slow};
    for (size_t i = 0; i < COUNT(fields); i++) {
        *fields[i] = next_number(in);
    }
    in->params.truncate = (int32_t)next_number(in);
    in->params.mscale = next_number(in);
    in->params.mscale_all_dim = next_number(in);
    in->params.attention_factor = next_number(in);
    in->params.short_factors = in->shorts;
    in->params.long_factors = in->longs;
    in->length = 0;
    assert_in_range(rotary_dim, 2, 2 * MOST_PAIRS);
}

/* A field that is not in every set. */
static void read_field(reader *in)
{
    char name[32];
    assert_int_equal(fscanf(in->file, "%31s", name), 1);
    const struct {
        const char *name;
        double *real;
        int32_t *whole;
    } FIELDS[] = {{"mixed_exponent", &in->params.mixed_exponent, NULL},
                  {"magnitude_slope", &in->params.magnitude_slope, NULL},
                  {"yarn_blend", NULL, &in->params.yarn_blend},
                  {"rotating_pairs", NULL, &in->params.rotating_pairs},
                  {"recipe", NULL, &in->params.recipe}};
    for (size_t i = 0; i < COUNT(FIELDS); i++) {
        if (strcmp(name, FIELDS[i].name) == 0) {
            double value = next_number(in);
            if (FIELDS[i].real) {
                *FIELDS[i].real = value;
            } else {
                *FIELDS[i].whole = (int32_t)value;
            }
            return;
        }
    }
    if (strcmp(name, "length") == 0) {
        in->length = (int64_t)next_number(in);
        in->params.length = in->params.recipe == POSENC_RECIPE_VLLM ? in->length : 0;
        return;
    }
    int is_long = strcmp(name, "long_factors") == 0;
    assert_true(is_long || strcmp(name, "short_factors") == 0);
    for (int32_t i = 0; i < in->params.rotary_dim / 2; i++) {
        (is_long ? in->longs : in->shorts)[i] = next_number(in);
    }
}

/* A decimal of 17 digits is off by half a unit of its last digit: at times a double's last bit. */
static void check_decimal(reader *in, double got)
{
    char token[64];
    assert_int_equal(fscanf(in->file, "%63s", token), 1);
    long double value = strtold(token, NULL);
    if (value == 0.0L) {
        assert_true(got == 0.0);
        return;
    }
    long double unit = powl(10.0L, floorl(log10l(value)) - 16.0L);
    if (fabsl((long double)got - value) > 0.5L * (long double)spacing(got) + 0.51L * unit) {
        fail_msg("%s: %.17g is not the double nearest to %s", in->name, got, token);
    }
}

static void check_inv_freq(reader *in)
{
    double got[MOST_PAIRS];
    posenc_frequencies(&in->params, in->length, 0, 0, in->params.rotary_dim / 2, got);
    assert_int_equal((int32_t)next_number(in), in->params.rotary_dim / 2);
    for (int32_t i = 0; i < in->params.rotary_dim / 2; i++, in->exact++) {
        check_decimal(in, got[i]);
    }
}

/* The stored power is not correctly rounded: a few units in the last place are its own. */
static void check_inv_freq_f32(reader *in)
{
    float got[MOST_PAIRS];
    posenc_frequencies_f32(&in->params, in->length, 0, 0, in->params.rotary_dim / 2, got);
    assert_int_equal((int32_t)next_number(in), in->params.rotary_dim / 2);
    for (int32_t i = 0; i < in->params.rotary_dim / 2; i++, in->f32++) {
        int32_t expected = (int32_t)posenc_bits32((float)next_number(in));
        int32_t apart = (int32_t)posenc_bits32(got[i]) - expected;
        if (apart < -in->most_apart || apart > in->most_apart) {
            fail_msg("%s pair %d: %.9g is %d units off", in->name, i, (double)got[i], apart);
        }
        in->f32_equal += apart == 0;
    }
}

static void check_pair(reader *in)
{
    double got[MOST_PAIRS];
    posenc_frequencies(&in->params, in->length, 0, 0, in->params.rotary_dim / 2, got);
    int32_t pair = (int32_t)next_number(in);
    double expected = next_number(in);
    if (got[pair] != expected) {
        fail_msg("%s pair %d: %a, not %a", in->name, pair, got[pair], expected);
    }
    in->pairs++;
}

/* Python's chain of doubles may be a unit off where a recipe was run. */
static void check_attention(reader *in)
{
    double got = posenc_attention_factor(&in->params, in->length);
    in->attention++;
    if (in->params.recipe == POSENC_RECIPE_EXACT) {
        check_decimal(in, got);
        return;
    }
    double expected = next_number(in);
    assert_true(fabs(got - expected) <= 2.0 * spacing(expected));
}

static void check_file(reader *in, const char *path)
{
    in->file = fopen(path, "r");
    assert_non_null(in->file);
    char keyword[32];
    while (fscanf(in->file, "%31s", keyword) == 1) {
        if (strcmp(keyword, "set") == 0) {
            read_set(in);
        } else if (strcmp(keyword, "attention") == 0) {
            check_attention(in);
        } else if (strcmp(keyword, "with") == 0) {
            read_field(in);
        } else if (strcmp(keyword, "softmax") == 0) {
            assert_true(posenc_softmax_multiplier(&in->params) == next_number(in));
            in->softmax++;
        } else if (strcmp(keyword, "inv_freq") == 0) {
            check_inv_freq(in);
        } else if (strcmp(keyword, "inv_freq_f32") == 0) {
            check_inv_freq_f32(in);
        } else if (strcmp(keyword, "pair") == 0) {
            check_pair(in);
        } else {
            assert_string_equal(keyword, "#");
            assert_int_equal(fscanf(in->file, "%*[^\n]"), 0);
        }
    }
    fclose(in->file);
}

static void hardest_values_of_mpmath_are_met(void **state)
{
    (void)state;
    reader in = {0};
    check_file(&in, POSENC_TEST_DATA "/frequencies_hard.txt");
    assert_int_equal(in.pairs, 400);
    assert_int_equal(in.attention, 60);
}

static void hardest_values_of_later_schemes_are_met(void **state)
{
    (void)state;
    reader in = {0};
    check_file(&in, POSENC_TEST_DATA "/frequencies_schemes.txt");
    assert_int_equal(in.pairs, 610);
    assert_int_equal(in.attention, 80);
    assert_int_equal(in.softmax, 40);
}

/* docs/schemes.md states how far the recipes may be from a run of their system. */
static void check_recipe(const char *path, int32_t most_apart, long sets)
{
    reader in = {.most_apart = most_apart};
    check_file(&in, path);
    print_message("%ld of %ld float32 values equal\n", in.f32_equal, in.f32);
    assert_int_equal(in.attention, sets);
    assert_true(in.f32 > 40 * sets);
    assert_true(in.f32_equal * 100 >= in.f32 * 98);
}

static void transformers_is_met(void **state)
{
    (void)state;
    check_recipe(POSENC_TEST_DATA "/frequencies_hf.txt", 2, 56);
}

static void vllm_is_met(void **state)
{
    (void)state;
    check_recipe(POSENC_TEST_DATA "/frequencies_vllm.txt", 3, 80);
}

static void values_of_models_and_cases_are_met(void **state)
{
    (void)state;
    reader in = {.most_apart = 2};
    check_file(&in, POSENC_TEST_DATA "/frequencies_golden.txt");
    assert_true(in.exact > 2700 && in.f32 > 2600 && in.attention > 60);
    print_message("float32 recipe: %ld of %ld stored values equal\n", in.f32_equal, in.f32);
    assert_true(in.f32_equal * 100 >= in.f32 * 99);
}

/* Ten digits published for well-known models: factors, ranges and blends in one look. */
static void published_examples_are_met(void **state)
{
    (void)state;
    static const struct {
        int32_t scaling, r, truncate, pair;
        double base, factor, length, value;
    } EXAMPLES[] = {
        {3, 128, 1, 8, 1e6, 4, 32768, 1.778279410e-1},
        {3, 128, 1, 63, 1e6, 4, 32768, 3.102344402e-7},
        {3, 64, 1, 12, 1e4, 40, 4096, 2.687936011e-2},
        {3, 64, 1, 17, 1e4, 40, 4096, 3.561997494e-3},
        {3, 64, 1, 31, 1e4, 40, 4096, 3.333803580e-6},
        {3, 64, 0, 12, 1.5e5, 32, 4096, 6.794959490e-3},
        {3, 64, 0, 17, 1.5e5, 32, 4096, 1.293187012e-4},
        {3, 64, 1, 17, 1.5e5, 32, 4096, 2.279477958e-4},
        {2, 128, 1, 28, 5e5, 8, 8192, 3.211445995e-3},
        {2, 128, 1, 29, 5e5, 8, 8192, 2.166570764e-3},
        {2, 128, 1, 34, 5e5, 8, 8192, 1.785078128e-4},
        {2, 128, 1, 35, 5e5, 8, 8192, 9.556212354e-5}};
    for (size_t i = 0; i < COUNT(EXAMPLES); i++) {
        double got[64], expected = EXAMPLES[i].value;
        posenc_rope_params p = parameters(EXAMPLES[i].scaling, EXAMPLES[i].base, EXAMPLES[i].r);
        p.factor = EXAMPLES[i].factor;
        p.original_max_position = EXAMPLES[i].length;
        p.truncate = EXAMPLES[i].truncate;
        all_frequencies(&p, got);
        assert_true(fabs(got[EXAMPLES[i].pair] - expected) <= 6e-10 * expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hardest_values_of_mpmath_are_met),
        cmocka_unit_test(hardest_values_of_later_schemes_are_met),
        cmocka_unit_test(transformers_is_met),
        cmocka_unit_test(vllm_is_met),
        cmocka_unit_test(values_of_models_and_cases_are_met),
        cmocka_unit_test(published_examples_are_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
