/* SPDX-License-Identifier: MIT */
/* Moved keys against shifts by ggml (run_cache_shift.py): where it multiplies every key by YaRN's
 * attention factor once more, a move must not; without that factor both agree. */
#include "support/numbers.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 16, TOKENS = 4, SHIFTS = 3, SIZE = WIDTH * TOKENS, CASES = 9 };

static const char data_file[] = "cache_shift.txt";

static posenc_plan *plan_of(const double *numbers)
{
    posenc_rope_params params = test_params((int32_t)numbers[0], WIDTH, WIDTH);
    assert_int_equal((int)numbers[1], WIDTH);
    params.base = numbers[2];
    if (numbers[4] > 1) {
        params.scaling = POSENC_SCALING_YARN;
        params.original_max_position = numbers[3];
        params.factor = numbers[4];
        params.attention_factor = numbers[5] > 0 ? 1 : 0;
    }
    return test_plan(&params);
}

static void floats(const char *id, const char *name, float *to)
{
    double numbers[SIZE];
    assert_int_equal(test_numbers(data_file, id, name, numbers, SIZE), SIZE);
    for (int i = 0; i < SIZE; i++)
        to[i] = (float)numbers[i];
}

static void move(const posenc_plan *plan, const posenc_cache *cache, const int64_t *shift)
{
    posenc_error error = {0, ""};
    posenc_positions deltas;
    posenc_positions_start(&deltas, 0);
    deltas.kind = POSENC_POSITIONS_IDS;
    deltas.dtype = POSENC_I64;
    deltas.ids = shift;
    deltas.stride[1] = 1;
    test_ok(posenc_cache_move(plan, &deltas, cache, 0, 0, TOKENS, &error), &error);
}

/* How far channel c of a token is from `expected`, in units of what ggml's recurrence in float32
 * may be off by: 2^-24 of the angle and some roundings, on |a| + |b| <= 2 length. */
static double ratio(double got, double expected, const float *token, double turned)
{
    double length = 0;
    for (int i = 0; i < WIDTH; i++)
        length = fmax(length, fabs((double)token[i]));
    return fabs(got - expected) / ((turned * 0x1p-24 + 2e-6) * 2 * length);
}

static void read_shift(int n, int64_t *shift)
{
    double numbers[TOKENS];
    char name[32];
    snprintf(name, sizeof(name), "shift.%d", n);
    test_numbers(data_file, "plan", name, numbers, TOKENS);
    for (int t = 0; t < TOKENS; t++)
        shift[t] = (int64_t)numbers[t];
}

/* After each shift: ggml's keys are ours times the factor once for each shift so far. */
static void check(const char *id, const float *x, int shifts, double factor, const double *turned)
{
    float ggml[SIZE];
    double missed = 0, power = pow(factor, shifts);
    char name[32];
    snprintf(name, sizeof(name), "after.%d", shifts - 1);
    floats(id, name, ggml);
    for (int i = 0; i < SIZE; i++) {
        const float *token = ggml + i / WIDTH * WIDTH;
        double ours = (double)x[i], theirs = (double)ggml[i], off = turned[i / WIDTH];
        if (!(ratio(ours * power, theirs, token, off) <= 1))
            fail_msg("%s, %d shifts: key %d channel %d is %g, with ggml's factors %g and not %g",
                     id, shifts, i / WIDTH, i % WIDTH, ours, ours * power, theirs);
        missed = fmax(missed, ratio(ours, theirs, token, off));
    }
    if (factor > 1)
        assert_true(missed > 100);
    else
        assert_true(missed <= 1);
}

static void keys_do_not_grow(void **state)
{
    size_t n = 0, scaled = 0;
    char id[64];
    (void)state;
    for (; test_number_id(data_file, "shift", n, id, sizeof(id)); n++) {
        double numbers[6], turned[TOKENS] = {0}, factor;
        float x[SIZE], before[SIZE];
        int64_t shift[TOKENS];
        posenc_tensor rows;
        posenc_cache cache;
        assert_int_equal(test_numbers(data_file, id, "shift", numbers, 6), 6);
        posenc_plan *plan = plan_of(numbers);
        factor = posenc_plan_attention_factor(plan);
        scaled += factor > 1;
        floats(id, "stored", x);
        memcpy(before, x, sizeof(x));
        posenc_tensor_contiguous(&rows, x, POSENC_F32, 1, TOKENS, 1, WIDTH);
        posenc_cache_plain(&cache, &rows);
        for (int s = 0; s < SHIFTS; s++) {
            read_shift(s, shift);
            move(plan, &cache, shift);
            for (int t = 0; t < TOKENS; t++)
                turned[t] += fabs((double)shift[t]);
            if (s == 0)
                assert_memory_equal(x, before, sizeof(x));
            check(id, x, s + 1, factor, turned);
        }
        posenc_plan_free(plan);
    }
    assert_int_equal(n, CASES);
    assert_int_equal(scaled, 4);
}

/* The factors that llama.cpp's keys grow by: s = 4 and s = 32. */
static void factors_are_those_of_yarn(void **state)
{
    static const struct { double scale, factor; } known[] = {{4, 1.138629}, {32, 1.346574}};
    (void)state;
    for (int n = 0; n < 2; n++) {
        double numbers[6] = {POSENC_ADJACENT, WIDTH, 10000, 4096, known[n].scale, 0};
        posenc_plan *plan = plan_of(numbers);
        assert_true(fabs(posenc_plan_attention_factor(plan) - known[n].factor) < 5e-7);
        posenc_plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_do_not_grow),
                                       cmocka_unit_test(factors_are_those_of_yarn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
