/* SPDX-License-Identifier: MIT */
/* Rotation of hostile values: every bit pattern, every float16, and the hash that all machines
 * reach. */
#include "support/half.h"
#include "support/random.h"
#include "support/test.h"

#include <math.h>

enum { WIDEST = 258, HEADS = 3 };

static const int32_t dtypes[3] = {POSENC_F32, POSENC_F16, POSENC_BF16};

static posenc_plan *plan_of(int32_t layout, int32_t head_dim, int32_t width, int32_t offset,
                            int32_t isa)
{
    posenc_rope_params params = test_params(layout, head_dim, width);

    params.rotary_offset = offset;
    params.isa = isa;
    return test_plan(&params);
}

/* A contiguous view [1][tokens][heads][channels]. */
static posenc_tensor view(void *data, int32_t dtype, int64_t tokens, int64_t heads,
                          int64_t channels)
{
    posenc_tensor tensor;

    posenc_tensor_contiguous(&tensor, data, dtype, 1, tokens, heads, channels);
    return tensor;
}

static void rotate(const posenc_plan *plan, const posenc_tensor *rows, const posenc_tensor *in,
                   const posenc_tensor *out)
{
    posenc_error error = {0, ""};

    test_ok(posenc_rotate(plan, POSENC_FORWARD, rows, in, out, NULL, NULL, &error), &error);
}

/* Random bits, in the data and in the row: NaNs, infinities, subnormals, both zeros. */
static void test_random_bits(void **state)
{
    static const int32_t widths[] = {2, 6, 30, 32, 34, 64, 126, 130, 258};
    static uint32_t in[HEADS * (WIDEST + 5)], scalar[HEADS * (WIDEST + 5)],
        out[HEADS * (WIDEST + 5)];
    static uint32_t row[WIDEST];
    struct test_random random = {21};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (int round = 0; round < 18 * 9 * (test_quick() ? 1 : 8); round++) {
        int32_t layout = 1 + round % 2, from = dtypes[round / 2 % 3], to = dtypes[round / 6 % 3];
        int32_t width = widths[round / 18 % 9], channels = width + 5;
        posenc_tensor rows = view(row, POSENC_F32, 1, 1, width);
        posenc_tensor source = view(in, from, 1, HEADS, channels);

        for (int i = 0; i < HEADS * channels; i++) in[i] = test_bits(&random);
        for (int i = 0; i < width; i++) row[i] = test_bits(&random) & 0xbfffffffu;
        for (size_t k = 0; k < n; k++) {
            posenc_plan *plan = plan_of(layout, channels, width, 3, isas[k]);
            posenc_tensor target = view(k ? out : scalar, to, 1, HEADS, channels);

            rotate(plan, &rows, &source, &target);
            posenc_plan_free(plan);
            for (int i = 0; i < HEADS * channels; i++) {
                int c = i % channels;

                if (k && !test_same_element(out, scalar, to, i)) {
                    fail_msg("%s: layout %d, %d -> %d, width %d, channel %d: %a instead of %a",
                             posenc_isa_name(isas[k]), layout, from, to, width, c,
                             test_load(out, to, i), test_load(scalar, to, i));
                }
                if (from == to && (c < 3 || c >= 3 + width)) {
                    size_t size = test_size(to);

                    assert_memory_equal((char *)in + (size_t)i * size,
                                        (char *)target.data + (size_t)i * size, size);
                }
            }
        }
    }
}

/* One lane of a vector must not change another: a large, infinite or NaN pair beside the one
 * watched. */
static void test_lanes(void **state)
{
    static const float loud[] = {0x1.fffffep127f, INFINITY, NAN, 1e-44f};
    enum { WIDTH = 64, PAIRS = WIDTH / 2 };
    struct test_random random = {22};
    float quiet[WIDTH], noisy[WIDTH], out[WIDTH], row[WIDTH];
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (int i = 0; i < WIDTH; i++) {
        quiet[i] = test_unit(&random);
        row[i] = test_unit(&random);
    }
    for (size_t k = 0; k < n * 2; k++) {
        posenc_plan *plan = plan_of(POSENC_SPLIT_HALF, WIDTH, WIDTH, 0, isas[k / 2]);
        posenc_tensor rows = view(row, POSENC_F32, 1, 1, WIDTH);
        posenc_tensor source = view(quiet, POSENC_F32, 1, 1, WIDTH);
        posenc_tensor target = view(out, POSENC_F32, 1, 1, WIDTH);

        rotate(plan, &rows, &source, &target);
        source.data = noisy;
        for (int i = 0; i < PAIRS; i++) {
            float alone[WIDTH];

            for (int j = 0; j < WIDTH; j++)
                noisy[j] = j % PAIRS == i ? quiet[j] : loud[(i + j) % 4];
            target.data = alone;
            rotate(plan, &rows, &source, &target);
            assert_memory_equal(&alone[i], &out[i], sizeof(float));
            assert_memory_equal(&alone[PAIRS + i], &out[PAIRS + i], sizeof(float));
        }
        posenc_plan_free(plan);
    }
}

/* Converts `count` numbers of dtype `from` to `to`, outside the window (0) or inside it (1: cosine
 * 1, sine 0, partner 0, so that only the conversion is left). */
static void convert(int32_t isa, int32_t from, int32_t to, const void *in, void *out, int64_t count,
                    int inside)
{
    enum { CHANNELS = 512 };
    posenc_plan *plan = plan_of(POSENC_SPLIT_HALF, CHANNELS, inside ? CHANNELS : 2, 0, isa);
    static float row[CHANNELS];
    static uint32_t padded[CHANNELS], result[CHANNELS];
    posenc_tensor rows = view(row, POSENC_F32, 1, 1, inside ? CHANNELS : 2);
    posenc_tensor source = view(padded, from, 1, 1, CHANNELS);
    posenc_tensor target = view(result, to, 1, 1, CHANNELS);
    int64_t step = inside ? CHANNELS / 2 : CHANNELS - 2, first = inside ? 0 : 2;
    size_t in_size = test_size(from), out_size = test_size(to);

    for (int i = 0; i < CHANNELS; i++) row[i] = i < (inside ? CHANNELS / 2 : 1) ? 1.0f : 0.0f;
    memset(padded, 0, sizeof padded);
    for (int64_t at = 0; at < count; at += step) {
        int64_t now = count - at < step ? count - at : step;

        memcpy((char *)padded + (size_t)first * in_size, (const char *)in + (size_t)at * in_size,
               (size_t)now * in_size);
        rotate(plan, &rows, &source, &target);
        memcpy((char *)out + (size_t)at * out_size, (char *)result + (size_t)first * out_size,
               (size_t)now * out_size);
    }
    posenc_plan_free(plan);
}

/* 1 if `got` is `value` rounded once into dtype; the sign of a computed zero is free. */
static int is_rounded(double value, const void *got, int32_t dtype, int64_t i, int computed)
{
    char expected[4];
    double rounded;

    test_store(expected, dtype, 0, value);
    rounded = test_load(expected, dtype, 0);
    if (computed && rounded == 0 && test_load(got, dtype, i) == 0) return 1;
    return test_same_element(expected, (const char *)got + i * (int64_t)test_size(dtype), dtype, 0);
}

static void check_conversion(int32_t isa, int32_t from, int32_t to, const void *in, int64_t count)
{
    static uint32_t out[1 << 20];

    for (int inside = 0; inside < 2; inside++) {
        convert(isa, from, to, in, out, count, inside);
        for (int64_t i = 0; i < count; i++) {
            double value = test_load(in, from, i);

            /* Inside, infinity meets a sine of 0: NaN by IEEE 754, as in the C loop. */
            if (inside && !isfinite(value)) continue;
            if (!is_rounded(value, out, to, i, inside)) {
                fail_msg("%s: %d -> %d of %a (%s): %a", posenc_isa_name(isa), from, to, value,
                         inside ? "computed" : "copied", test_load(out, to, i));
            }
        }
    }
}

/* All 65536 float16 and bfloat16, to every type. */
static void test_all_halves(void **state)
{
    static uint16_t all[65536];
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (int i = 0; i < 65536; i++) all[i] = (uint16_t)i;
    for (size_t k = 0; k < n; k++) {
        for (int from = 1; from < 3; from++) {
            for (int to = 0; to < 3; to++) {
                check_conversion(isas[k], dtypes[from], dtypes[to], all, 65536);
            }
        }
    }
}

/* Floats at, just below and just above every value and every midpoint of two halves. */
static void test_all_midpoints(void **state)
{
    static float floats[6 * 32768 * 2];
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);
    int step = test_quick() ? 13 : 1;

    (void)state;
    for (int type = 1; type < 3; type++) {
        int64_t count = 0;
        uint16_t infinity = test_narrow((double)INFINITY, dtypes[type]);

        for (int i = 0; i < infinity; i += step) {
            double value = test_widen((uint16_t)i, dtypes[type]);
            double next = i + 1 == infinity ? value + 2 * test_half_ulp(value, dtypes[type])
                                            : test_widen((uint16_t)(i + 1), dtypes[type]);
            float middle = (float)((value + next) / 2);

            for (int sign = -1; sign <= 1; sign += 2) {
                floats[count++] = (float)sign * middle;
                floats[count++] = (float)sign * nextafterf(middle, 0);
                floats[count++] = (float)sign * nextafterf(middle, INFINITY);
                floats[count++] = (float)sign * (float)value;
            }
        }
        for (size_t k = 0; k < n; k++) {
            check_conversion(isas[k], POSENC_F32, dtypes[type], floats, count);
        }
    }
}

/* The bits that x86 and aarch64 both reach, and any other machine: no NaN, no overflow inside. */
static void test_stored_hash(void **state)
{
    enum { WIDTH = 90, TOKENS = 16 };
    static float in[TOKENS * HEADS * (WIDTH + 6)];
    static uint32_t narrow[TOKENS * HEADS * (WIDTH + 6)], out[TOKENS * HEADS * (WIDTH + 6)];
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas), count = TOKENS * HEADS * (WIDTH + 6);

    (void)state;
    for (size_t k = 0; k < n; k++) {
        uint64_t hash = TEST_HASH_START;

        for (int round = 0; round < 18; round++) {
            int32_t from = dtypes[round / 2 % 3], to = dtypes[round / 6];
            struct test_random random = {(uint32_t)round};
            posenc_plan *plan = plan_of(1 + round % 2, WIDTH + 6, WIDTH, 4, isas[k]);
            posenc_tensor source = view(narrow, from, TOKENS, HEADS, WIDTH + 6);
            posenc_tensor target = view(out, to, TOKENS, HEADS, WIDTH + 6);
            posenc_positions positions;
            posenc_error error = {0, ""};

            for (size_t i = 0; i < count; i++) {
                in[i] = ldexpf(test_unit(&random), 5 - (int)(i % 40));
                test_store(narrow, from, (int64_t)i, (double)in[i]);
            }
            posenc_positions_start(&positions, 1000 * round - 5);
            test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &source, &target, NULL, NULL,
                                &error), &error);
            hash = test_hash(hash, out, count, test_size(to));
            posenc_plan_free(plan);
        }
        if (hash != UINT64_C(0x7e2fa0694d58e203)) {
            fail_msg("%s: 0x%016llx", posenc_isa_name(isas[k]), (unsigned long long)hash);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_bits),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_all_halves),
        cmocka_unit_test(test_all_midpoints),
        cmocka_unit_test(test_stored_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
