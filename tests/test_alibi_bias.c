/* SPDX-License-Identifier: MIT */
/* ALiBi: values against the formula and against transformers, equal bits, known cases. */
#include "bias_support.h"
#include "support/cases.h"
#include "support/half.h"

#include <math.h>

enum { RUN = 4096 };
static double stored[RUN];

static posenc_alibi_params params_of(int32_t form, int64_t heads)
{
    posenc_alibi_params params;

    posenc_alibi_params_init(&params);
    params.form = form;
    params.heads = heads;
    return params;
}

static posenc_tensor plain(void *data, int32_t dtype, int64_t batch, int64_t queries,
                           int64_t heads, int64_t keys)
{
    posenc_tensor view;

    posenc_tensor_contiguous(&view, data, dtype, batch, queries, heads, keys);
    return view;
}

static void fill(const posenc_alibi_params *params, const posenc_tensor *bias)
{
    posenc_error error = {0, ""};

    test_ok(posenc_alibi_bias(params, bias, &error), &error);
}

/* The exact slope of a head, as in Press et al. 2021 and for other counts. */
static long double true_slope(int64_t k, int64_t heads, double max_bias)
{
    int64_t n = 1;

    while (2 * n <= heads) n *= 2;
    return k < n ? exp2l(-(long double)max_bias * (long double)(k + 1) / (long double)n)
                 : exp2l(-(long double)max_bias / 2 * (long double)(2 * (k - n) + 1) /
                         (long double)n);
}

static long double true_distance(int32_t form, int64_t query, int64_t key, int64_t keys)
{
    switch (form) {
    case POSENC_ALIBI_DISTANCE: return key < query ? (long double)(key - query) : 0;
    case POSENC_ALIBI_ABS: return -(long double)llabs(key - query);
    case POSENC_ALIBI_LAST: return (long double)(key - (keys - 1));
    default: return (long double)key;
    }
}

/* Within 0.51 ulp in float32 of the true value, and 16 bits are that float rounded once. */
static void check_values(int32_t form, int64_t heads, double max_bias, double scale, int causal,
                         int64_t offset, int64_t queries, int64_t keys)
{
    static float wide[3 * 90 * 1300];
    static uint16_t half[3 * 90 * 1300];
    posenc_alibi_params params = params_of(form, heads);
    size_t i = 0;

    params.max_bias = max_bias;
    params.scale = scale;
    params.causal = causal;
    params.query_offset = offset;
    params.first_head = heads - 3;
    posenc_tensor bias = plain(wide, POSENC_F32, 1, queries, 3, keys);
    fill(&params, &bias);
    for (int64_t q = offset; q < offset + queries; q++)
        for (int64_t h = heads - 3; h < heads; h++)
            for (int64_t j = 0; j < keys; j++, i++) {
                long double truth = (long double)scale * true_slope(h, heads, max_bias) *
                                    true_distance(form, q, j, keys);

                if (causal && j > q ? wide[i] != -HUGE_VALF
                                    : !(fabsl((long double)wide[i] - truth) <=
                                        1.02L * (long double)test_half_ulp((double)truth,
                                                                           POSENC_F32)))
                    fail_msg("form %d, query %d, key %d: %a for %La", form, (int)q, (int)j,
                             (double)wide[i], truth);
                if (truth == 0 && wide[i] == 0 && signbit(wide[i]))
                    fail_msg("-0 at key %d", (int)j);
            }
    for (int32_t dtype = POSENC_F16; dtype <= POSENC_BF16; dtype++) {
        bias = plain(half, dtype, 1, queries, 3, keys);
        fill(&params, &bias);
        for (size_t k = 0; k < i; k++)
            if (half[k] != test_narrow((double)wide[k], dtype))
                fail_msg("dtype %d of %a: %x", dtype, (double)wide[k], half[k]);
    }
}

static void test_values(void **state)
{
    (void)state;
    for (int32_t form = POSENC_ALIBI_DISTANCE; form <= POSENC_ALIBI_ABS; form++)
        for (int causal = 0; causal < 2; causal++) {
            check_values(form, 12, 8, 1, causal, 1200, 90, 1290);
            check_values(form, 71, 6.5, 0.125, causal, 0, 70, 70);
            check_values(form, 8, 8, 1 / 3.0, causal, -5, 9, 5);
            check_values(form, 5, 64, 0x1p60, causal, 2147480000, 3, 1025);
            check_values(form, 5, 64, 0x1p-90, causal, 40, 1, 1100); /* subnormal floats */
        }
}

/* The largest offsets: nothing is lost where a float could not count any more. */
/* Strides of dimensions with one element are not used, not even in sums (sanitizers see those). */
static void test_unused_strides(void **state)
{
    (void)state;
    for (int32_t form = POSENC_ALIBI_DISTANCE; form <= POSENC_ALIBI_FALCON; form++) {
        float bias[8], expected[8];
        posenc_tensor odd = plain(bias, POSENC_F32, 1, 1, 1, 8);
        posenc_tensor usual = plain(expected, POSENC_F32, 1, 1, 1, 8);
        posenc_alibi_params params = params_of(form, 8);
        params.query_offset = 7;
        for (int d = 0; d < 3; d++) odd.stride[d] = d % 2 ? INT64_MAX : INT64_MIN;
        fill(&params, &odd);
        fill(&params, &usual);
        assert_memory_equal(bias, expected, sizeof bias);
    }
}

static void test_far(void **state)
{
    float value[2];
    posenc_alibi_params params = params_of(POSENC_ALIBI_DISTANCE, 1);
    posenc_tensor bias = plain(value, POSENC_F32, 1, 1, 1, 2);

    (void)state;
    params.query_offset = INT32_MAX;
    fill(&params, &bias);
    assert_true(value[0] == (float)(-2147483647.0 / 256) && value[1] == -2147483646.0f / 256);
    params.form = POSENC_ALIBI_ABS;
    params.query_offset = -INT32_MAX + 1;
    fill(&params, &bias);
    assert_true(value[0] == -2147483646.0f / 256 && value[1] == (float)(-2147483647.0 / 256));
}

/* The caller's own slopes, zero and negative ones too. */
static void test_own_slopes(void **state)
{
    const double slopes[3] = {0, -2, 0.1};
    float value[12];
    posenc_alibi_params params = params_of(POSENC_ALIBI_DISTANCE, 0);
    posenc_tensor bias = plain(value, POSENC_F32, 1, 1, 3, 4);

    (void)state;
    params.slopes = slopes;
    params.max_bias = -1; /* not read */
    params.query_offset = 2;
    params.causal = 1;
    fill(&params, &bias);
    const float expected[12] = {0, 0, 0, -HUGE_VALF, 4, 2, 0, -HUGE_VALF,
                                -0.2f, -0.1f, 0, -HUGE_VALF};
    for (int i = 0; i < 12; i++) {
        assert_true(value[i] == expected[i]);
        assert_false(value[i] == 0 && signbit(value[i]));
    }
}

/* ---------------------------------------------------------------------------------------------- */

static void near_stored(const char *id, const float *values, size_t count, double tolerance)
{
    assert_int_equal(test_numbers("biases_transformers.txt", id, "bias", stored, RUN), count);
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)values[i] - stored[i]) <= tolerance * fabs(stored[i])))
            fail_msg("%s, value %zu: %.9g instead of %.9g", id, i, (double)values[i], stored[i]);
}

/* BLOOM with padding on both sides and inside; its float32 powers are off by 7e-7 at most. */
static void test_bloom(void **state)
{
    float values[2 * 12 * 24];
    double mask[48];
    uint8_t seen[48];
    int64_t positions[48];

    (void)state;
    assert_int_equal(test_numbers("biases_transformers.txt", "alibi", "mask", mask, 48), 48);
    for (int i = 0; i < 48; i++) seen[i] = mask[i] != 0;
    test_ok(posenc_ids_from_mask(seen, 2, 24, 0, positions, NULL), NULL);
    for (int64_t heads = 8; heads <= 12; heads += 4) {
        char id[16] = "bloom/8";
        posenc_alibi_params params = params_of(POSENC_ALIBI_KEY, heads);
        posenc_tensor bias = plain(values, POSENC_F32, 2, 1, heads, 24);

        if (heads == 12) memcpy(id, "bloom/12", 9);
        params.key_positions = positions;
        fill(&params, &bias);
        near_stored(id, values, (size_t)(2 * heads * 24), heads == 8 ? 0 : 1e-6);
    }
}

static void test_mpt(void **state)
{
    static const struct { const char *id; int64_t heads; } models[] = {
        {"mpt/6", 6}, {"mpt/8", 8}, {"mpt/12", 12}};
    float values[12 * 40];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        posenc_alibi_params params = params_of(POSENC_ALIBI_LAST, models[i].heads);
        posenc_tensor bias = plain(values, POSENC_F32, 1, 1, models[i].heads, 40);

        assert_int_equal(test_numbers("biases_transformers.txt", models[i].id, "max",
                                      &params.max_bias, 1), 1);
        fill(&params, &bias);
        near_stored(models[i].id, values, (size_t)(models[i].heads * 40), 1e-6);
    }
}

/* Falcon's own rounding, bit by bit; KEY with the scale is what it would be without. */
static void test_falcon(void **state)
{
    static float values[71 * 700], exact[71 * 700];
    static const struct { const char *id; int64_t heads; } models[] = {
        {"falcon/32", 32}, {"falcon/71", 71}};
    double keys[64];
    size_t chosen = test_numbers("biases_transformers.txt", "falcon", "keys", keys, 64);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int64_t heads = models[i].heads;
        posenc_alibi_params params = params_of(POSENC_ALIBI_FALCON, heads);
        posenc_tensor bias = plain(values, POSENC_F32, 1, 1, heads, 700);
        posenc_tensor other = plain(exact, POSENC_F32, 1, 1, heads, 700);
        double worst = 0;

        assert_int_equal(test_numbers("biases_transformers.txt", models[i].id, "scale",
                                      &params.scale, 1), 1);
        fill(&params, &bias);
        params.form = POSENC_ALIBI_KEY;
        fill(&params, &other);
        assert_int_equal(test_numbers("biases_transformers.txt", models[i].id, "bias", stored, RUN),
                         (size_t)heads * chosen);
        for (size_t v = 0; v < (size_t)heads * chosen; v++) {
            size_t at = v / chosen * 700 + (size_t)keys[v % chosen];

            if (values[at] != (float)stored[v])
                fail_msg("%s key %g: %a for %a", models[i].id, keys[v % chosen],
                         (double)values[at], stored[v]);
            if (exact[at] > 0)
                worst = fmax(worst, fabs((double)values[at] / (double)exact[at] - 1));
        }
        assert_true(worst > 0.003 && worst < 3 * 0x1p-8); /* three roundings to 8 bits */
    }
}

/* ---------------------------------------------------------------------------------------------- */

static void test_golden_slopes(void **state)
{
    static const char *const names[] = {"slopes", "slopes_bias_max_16"};
    char id[64];
    size_t models = 0;

    (void)state;
    for (int most = 0; most < 2; most++)
        for (size_t n = 0; test_number_id("golden_biases.txt", names[most], n, id, sizeof id);
             n++) {
            double slopes[128];
            size_t count = test_numbers("golden_biases.txt", id, names[most], stored, 128);

            test_ok(posenc_alibi_slopes(slopes, 0, (int64_t)count, (int64_t)count, most ? 16 : 8,
                                        NULL), NULL);
            for (size_t k = 0; k < count; k++) /* 17 digits may name the neighbour */
                assert_true(fabs(slopes[k] / stored[k] - 1) <= 0x1p-52);
            models++;
        }
    assert_int_equal(models, 17);
}

static void test_reported_slopes(void **state)
{
    static const int counts[] = {1, 2, 3, 5, 6, 8, 12, 40, 71};
    double slopes[71];

    (void)state;
    for (size_t i = 0; i < 9; i++) {
        char name[32] = "expected.";
        size_t end = strlen(name);

        if (counts[i] > 9) name[end++] = (char)('0' + counts[i] / 10);
        name[end] = (char)('0' + counts[i] % 10);
        assert_int_equal(test_numbers("cases.txt", "B33-a", name, stored, 71), counts[i]);
        test_ok(posenc_alibi_slopes(slopes, 0, counts[i], counts[i], 8, NULL), NULL);
        for (int k = 0; k < counts[i]; k++) assert_true(fabs(slopes[k] / stored[k] - 1) < 1e-15);
    }
    assert_int_equal(test_numbers("cases.txt", "B33-c", "expected.6", stored, 71), 6);
    test_ok(posenc_alibi_slopes(slopes, 0, 6, 6, 16, NULL), NULL);
    for (int k = 0; k < 6; k++) assert_true(slopes[k] == stored[k]);
    assert_int_equal(posenc_alibi_slopes(slopes, 0, 0, 0, 8, NULL), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_alibi_slopes(slopes, 0, 0, -1, 8, NULL), POSENC_ERROR_ARGUMENT);
}

/* One and two queries against five cached keys. */
static void test_cache(void **state)
{
    const double slope = case_number("B34-a", "parameters.slope");
    float one[5], two[10];
    posenc_alibi_params params = params_of(POSENC_ALIBI_DISTANCE, 0);
    posenc_tensor bias = plain(one, POSENC_F32, 1, 1, 1, 5);

    (void)state;
    params.slopes = &slope;
    params.causal = 1;
    params.query_offset = 4;
    fill(&params, &bias);
    case_check("B34-a", "expected.0.0", one, 0);
    params.query_offset = 3;
    bias = plain(two, POSENC_F32, 1, 2, 1, 5);
    fill(&params, &bias);
    case_check("B34-a", "expected.1.1", two + 5, 0);
    const float first[4] = {-1.5f, -1, -0.5f, 0};
    assert_memory_equal(two, first, sizeof first);
    assert_true(two[4] == -HUGE_VALF);
}

/* Eight tokens, one head (slope 1/256) and the first of eight (1/2): the last row is what a decoder
 * adds, falling by the slope with each token of distance; a larger slope looks less far. */
static void test_last_row(void **state)
{
    float rows[8 * 8 * 8];
    posenc_alibi_params params = params_of(POSENC_ALIBI_DISTANCE, 8);
    posenc_tensor bias = plain(rows, POSENC_F32, 1, 8, 8, 8);

    (void)state;
    fill(&params, &bias);
    for (int h = 0; h < 8; h++)
        for (int j = 0; j < 8; j++)
            assert_true(rows[(7 * 8 + h) * 8 + j] == ldexpf((float)(j - 7), -(h + 1)));
    assert_true(rows[7 * 64] == -3.5f && rows[7 * 64 + 7 * 8] == -7 / 256.0f);
}

/* Where the forms differ by a constant of the row, softmax is the same; ABS looks both ways. */
static void test_forms(void **state)
{
    float value[4][5];

    (void)state;
    for (int32_t form = 1; form <= 4; form++) {
        posenc_alibi_params params = params_of(form, 2);
        posenc_tensor bias = plain(value[form - 1], POSENC_F32, 1, 1, 1, 5);

        params.query_offset = 3;
        fill(&params, &bias);
    }
    for (int j = 0; j <= 3; j++) {
        assert_true(value[1][j] - value[0][j] == 3 * 0.0625f);
        assert_true(value[2][j] - value[0][j] == -0.0625f);
        assert_true(value[3][j] == value[0][j]);
    }
    assert_true(value[0][4] == 0 && value[3][4] == -0.0625f && value[2][4] == 0);
}

/* ---------------------------------------------------------------------------------------------- */

static int32_t fill_part(const struct bias_maker *maker, int32_t isa, int64_t query, int64_t head,
                         int64_t key, const posenc_tensor *bias, posenc_error *error)
{
    posenc_alibi_params params = *(const posenc_alibi_params *)maker->self;

    params.isa = isa;
    params.query_offset += query - key;
    params.first_head += head;
    return posenc_alibi_bias(&params, bias, error);
}

static void test_equal_bits(void **state)
{
    static int64_t positions[2 * 1100];

    (void)state;
    for (int i = 0; i < 2200; i++) positions[i] = i % 1100 - i / 1100 * 13;
    for (int32_t form = POSENC_ALIBI_DISTANCE; form <= POSENC_ALIBI_FALCON; form++)
        for (int32_t dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++)
            for (int causal = 0; causal < 2; causal++) {
                posenc_alibi_params params = params_of(form, 12);
                int by_distance = form == POSENC_ALIBI_DISTANCE || form == POSENC_ALIBI_ABS;
                const struct bias_maker maker = {&params, by_distance, fill_part};

                params.causal = causal;
                params.scale = 0.3;
                params.first_head = 7;
                params.query_offset = 21;
                bias_check(&maker, dtype, 2, 13, 3, 37);
                if (causal && !by_distance) params.key_positions = positions;
                params.query_offset = 1030;
                if (dtype == 1 + (form + causal) % 3)
                    bias_check(&maker, dtype, 2, 67, 2, 1100);
            }
}

/* Groups of more than 64 heads, each with its own slope. */
static void test_many_heads(void **state)
{
    static float values[150 * 3];
    double slopes[150];
    posenc_alibi_params params = params_of(POSENC_ALIBI_KEY, 150);
    posenc_tensor bias = plain(values, POSENC_F32, 1, 1, 150, 3);

    (void)state;
    fill(&params, &bias);
    test_ok(posenc_alibi_slopes(slopes, 0, 150, 150, 8, NULL), NULL);
    for (int h = 0; h < 150; h++) assert_true(values[3 * h + 2] == (float)(2 * slopes[h]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),        cmocka_unit_test(test_far),
        cmocka_unit_test(test_own_slopes),    cmocka_unit_test(test_bloom),
        cmocka_unit_test(test_mpt),           cmocka_unit_test(test_falcon),
        cmocka_unit_test(test_golden_slopes), cmocka_unit_test(test_reported_slopes),
        cmocka_unit_test(test_cache),         cmocka_unit_test(test_last_row),
        cmocka_unit_test(test_forms),         cmocka_unit_test(test_equal_bits),
        cmocka_unit_test(test_many_heads),    cmocka_unit_test(test_unused_strides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
