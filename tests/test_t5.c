/* SPDX-License-Identifier: MIT */
/* T5: exact buckets, biases against transformers, equal bits. */
#include "bias_support.h"
#include "log_scale.h"
#include "powers.h"
#include "support/cases.h"
#include "support/half.h"

#include <math.h>
#include <stdio.h>

enum { RUN = 4096 };
static double stored[RUN];

static posenc_t5_params params_of(int32_t buckets, int64_t distance, int32_t two_sided)
{
    posenc_t5_params params;

    posenc_t5_params_init(&params);
    params.num_buckets = buckets;
    params.max_distance = distance;
    params.bidirectional = two_sided;
    return params;
}

static int32_t bucket(const posenc_t5_params *params, int64_t relative)
{
    posenc_error error = {0, ""};
    int32_t from = (int32_t)relative, to;

    test_ok(posenc_t5_buckets(params, &from, 1, &to, &error), &error);
    return to;
}

/* Every stored bound: the bucket begins there and nowhere below, in both directions. */
static void test_bounds(void **state)
{
    char id[16];
    size_t n = 0, checked = 0;
    FILE *stream = fopen(test_data_path("biases_exact.txt", (char[1024]){0}, 1024), "r");
    static char line[8192];

    (void)state;
    assert_non_null(stream);
    while (fgets(line, sizeof line, stream)) {
        char *rest = line;
        long long v[3], first, from;

        if (sscanf(line, "%15s", id) != 1 || strcmp(id, "t5") != 0) continue;
        rest = strstr(line, "bounds ") + 7;
        for (int i = 0; i < 3; i++) v[i] = strtoll(rest, &rest, 10);
        posenc_t5_params params = params_of((int32_t)v[0], v[1], (int32_t)v[2]);
        for (n++; *rest != '\n' && *rest; checked++) {
            first = strtoll(rest, &rest, 10);
            from = strtoll(rest, &rest, 10);
            if (from > v[0] && from < INT32_MAX) assert_true(bucket(&params, -from - 1) >= first);
            assert_true(bucket(&params, -from) >= first);
            if (bucket(&params, -from + 1) >= first)
                fail_msg("%lld %lld: bucket %lld begins below %lld", v[0], v[1], first, from);
            if (v[2] && from <= INT32_MAX) {
                assert_int_equal(bucket(&params, from), v[0] / 2 + bucket(&params, -from));
                assert_int_equal(bucket(&params, from - 1), v[0] / 2 + bucket(&params, 1 - from));
            }
        }
    }
    fclose(stream);
    assert_true(n > 140 && checked > 2000);
}

/* The integer decision, which runs where 100 bits leave a doubt, gives the same bounds. */
static void test_integers_agree(void **state)
{
    static const int64_t settings[][3] = {{8, 128, 8}, {16, 128, 16}, {80, 800, 80}, {24, 512, 24},
                                          {1, 3, 2}, {16, 16 * 6561, 16}, {700, 12345678901, 800},
                                          {5, INT64_C(1) << 53, 7}, {32768, 10000000, 32768}};

    (void)state;
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        struct posenc_log_scale scale;
        int64_t first = settings[s][0], last = settings[s][1], steps = settings[s][2];
        int64_t stride = steps > 100 ? 97 : 1;

        for (int32_t past = 0; past < 2; past++) {
            posenc_log_scale_init(&scale, first, last, steps, 2 * steps, past);
            for (int64_t k = 0; k <= 2 * steps; k += stride) {
                uint32_t from = posenc_log_scale_from(&scale, k);

                if (from == POSENC_LOG_NEVER) break;
                assert_true(posenc_power_order(from, first, last, steps, k) >= past);
                assert_true(posenc_log_scale_reached(&scale, from) >= k);
                if (from == first) continue;
                assert_true(posenc_log_scale_reached(&scale, from - 1) < k);
                assert_true(posenc_power_order((int64_t)from - 1, first, last, steps, k) < past);
            }
        }
    }
}

/* Equality is found where both sides are one power of a fraction, and only there. */
static void test_equal_powers(void **state)
{
    (void)state;
    assert_int_equal(posenc_power_order(16, 8, 128, 8, 2), 0); /* 8 2^(4 k/8) */
    assert_int_equal(posenc_power_order(32, 8, 128, 8, 4), 0);
    assert_int_equal(posenc_power_order(23, 8, 128, 8, 3), 1); /* 22.6 */
    assert_int_equal(posenc_power_order(22, 8, 128, 8, 3), -1);
    assert_int_equal(posenc_power_order(12, 8, 27, 3, 1), 0); /* 8 (3/2)^(3 k/3) */
    assert_int_equal(posenc_power_order(18, 8, 27, 3, 2), 0);
    assert_int_equal(posenc_power_order(40, 8, 27, 3, 4), -1); /* 40.5 */
    assert_int_equal(posenc_power_order(41, 8, 27, 3, 4), 1);
    assert_int_equal(posenc_power_order(8, 8, 27, 5, 0), 0);
    assert_int_equal(posenc_power_order(9, 8, 27, 5, 0), 1);
    /* c^2 = last + 1 with 53 bits: nothing but the last of 106 bits differs. */
    assert_int_equal(posenc_power_order(94906265, 1, INT64_C(94906265) * 94906265 - 1, 2, 1), 1);
    assert_int_equal(posenc_power_order(94906265, 1, INT64_C(94906265) * 94906265, 2, 1), 0);
    assert_int_equal(posenc_power_order(94906265, 1, INT64_C(94906265) * 94906265 + 1, 2, 1), -1);
}

static void test_golden(void **state)
{
    char id[16];
    size_t n = 0;

    (void)state;
    for (; test_number_id("golden_biases.txt", "buckets", n, id, sizeof id); n++) {
        double v[3];
        int32_t relative[1201], buckets[1201];

        test_numbers("golden_biases.txt", id, "settings", v, 3);
        posenc_t5_params params = params_of((int32_t)v[0], (int64_t)v[1], (int32_t)v[2]);
        assert_int_equal(test_numbers("golden_biases.txt", id, "buckets", stored, RUN), 1201);
        for (int i = 0; i < 1201; i++) relative[i] = i - 600;
        test_ok(posenc_t5_buckets(&params, relative, 1201, buckets, NULL), NULL);
        for (int i = 0; i < 1201; i++) assert_int_equal(buckets[i], (int32_t)stored[i]);
    }
    assert_int_equal(n, 4);
}

static void test_reported(void **state)
{
    static const char *const ids[] = {"B35-b", "B35-a"};
    double relative[64];

    (void)state;
    for (int32_t two_sided = 0; two_sided < 2; two_sided++) {
        posenc_t5_params params = params_of(32, 128, two_sided);
        size_t n = test_numbers("cases.txt", ids[two_sided], "input.relative_positions", relative,
                                64);

        assert_int_equal(test_numbers("cases.txt", ids[two_sided], "expected", stored, 64), n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(bucket(&params, (int64_t)relative[i]), (int32_t)stored[i]);
        for (int64_t far = 128; far < INT32_MAX; far = far * 3 / 2) /* one bucket for all */
            assert_int_equal(bucket(&params, -far), two_sided ? 15 : 31);
        assert_int_equal(bucket(&params, INT32_MIN), two_sided ? 15 : 31);
        assert_int_equal(bucket(&params, INT32_MAX), two_sided ? 31 : 0);
    }
}

/* Every value that transformers computed, of its own float32 buckets, near and far. */
static void test_transformers(void **state)
{
    static const char *const ids[] = {"t5/encoder", "t5/decoder", "t5/wide", "t5/odd"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        double v[6], weights[640];
        float table[640], bias[2 * 2 * 500];

        test_numbers("biases_transformers.txt", ids[i], "settings", v, 6);
        posenc_t5_params params = params_of((int32_t)v[0], (int64_t)v[1], (int32_t)v[2]);
        size_t n = test_numbers("biases_transformers.txt", ids[i], "table", weights, 640);
        assert_int_equal(n, 2 * (size_t)v[0]);
        for (size_t k = 0; k < n; k++) table[k] = (float)weights[k];
        n = test_numbers("biases_transformers.txt", ids[i], "bias", stored, RUN);
        assert_int_equal(n, 2000);
        params.query_offset = (int64_t)v[3];
        posenc_tensor from, to;
        posenc_tensor_contiguous(&from, table, POSENC_F32, 1, params.num_buckets, 1, 2);
        posenc_tensor_contiguous(&to, bias, POSENC_F32, 1, 2, 2, 500);
        to.stride[1] = 500; /* [heads][queries][keys] */
        to.stride[2] = 1000;
        posenc_error error = {0, ""};
        test_ok(posenc_t5_bias(&params, &from, &to, &error), &error);
        for (int k = 0; k < 2000; k++)
            if (bias[k] != (float)stored[k]) fail_msg("%s: value %d", ids[i], k);
    }
}

/* ---------------------------------------------------------------------------------------------- */

struct made {
    posenc_t5_params params;
    posenc_tensor table;
};

static int32_t fill_part(const struct bias_maker *maker, int32_t isa, int64_t query, int64_t head,
                         int64_t key, const posenc_tensor *bias, posenc_error *error)
{
    struct made m = *(const struct made *)maker->self;

    m.params.isa = isa;
    m.params.query_offset += query - key;
    m.table.data = (char *)m.table.data + (size_t)head * test_size(m.table.dtype);
    m.table.shape[3] = bias->shape[2];
    return posenc_t5_bias(&m.params, &m.table, bias, error);
}

/* All pairs of dtypes, tables with gaps; each value is the table's, rounded once. */
static void test_equal_bits(void **state)
{
    static uint16_t half[64 * 9];
    static float wide[64 * 9], out[13 * 3 * 37];
    struct test_random random = {7};

    (void)state;
    for (int32_t from = POSENC_F32; from <= POSENC_BF16; from++)
        for (int32_t to = POSENC_F32; to <= POSENC_BF16; to++)
            for (int kind = 0; kind < 4; kind++) {
                int32_t two_sided = kind / 2, causal = kind % 2;
                struct made m = {params_of(16, 40, two_sided), {0}};
                void *data = from == POSENC_F32 ? (void *)wide : (void *)half;
                const struct bias_maker maker = {&m, 1, fill_part};
                posenc_tensor plain;

                for (int64_t k = 0; k < 64 * 9; k++)
                    test_store(data, from, k, (double)test_unit(&random) * 9);
                posenc_tensor_contiguous(&m.table, data, from, 1, 16, 1, 3);
                m.table.stride[1] = 9;
                m.params.causal = causal;
                m.params.query_offset = 21;
                bias_check(&maker, to, 2, 13, 3, 37);
                if (from == to && two_sided == causal) bias_check(&maker, to, 1, 66, 2, 1100);
                posenc_tensor_contiguous(&plain, out, to, 1, 13, 3, 37);
                test_ok(posenc_t5_bias(&m.params, &m.table, &plain, NULL), NULL);
                for (int64_t i = 0; i < 13 * 3 * 37; i++) {
                    int64_t relative = i % 37 - i / 37 / 3 - 21, head = i / 37 % 3;
                    int32_t at = bucket(&m.params, relative);
                    double value = test_load(data, from, at * 9 + head);

                    if (causal && relative > 0) value = -HUGE_VAL;
                    float one = 0;
                    test_store(&one, to, 0, value);
                    assert_memory_equal(&one, (char *)out + (size_t)i * test_size(to),
                                        test_size(to));
                }
            }
}

/* The most buckets there are, over the whole of a long line. */
static void test_many_buckets(void **state)
{
    enum { BUCKETS = 65536, KEYS = 100000 };
    float *table = malloc(BUCKETS * sizeof *table), *bias = malloc(KEYS * sizeof *bias);
    posenc_t5_params params = params_of(BUCKETS, 1000000, 0);
    posenc_tensor from, to;

    (void)state;
    assert_true(table && bias);
    for (int i = 0; i < BUCKETS; i++) table[i] = (float)i;
    posenc_tensor_contiguous(&from, table, POSENC_F32, 1, BUCKETS, 1, 1);
    posenc_tensor_contiguous(&to, bias, POSENC_F32, 1, 1, 1, KEYS);
    params.query_offset = 90000;
    test_ok(posenc_t5_bias(&params, &from, &to, NULL), NULL);
    for (int j = 0; j < KEYS; j += 17)
        assert_int_equal((int32_t)bias[j], bucket(&params, j - 90000));
    free(table);
    free(bias);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),       cmocka_unit_test(test_integers_agree),
        cmocka_unit_test(test_equal_powers), cmocka_unit_test(test_golden),
        cmocka_unit_test(test_reported),     cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_equal_bits),         cmocka_unit_test(test_many_buckets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
