/* SPDX-License-Identifier: MIT */
/* I8 from floats and back: the definition in double, the error, equal bits, extremes, guards. */
#include "../src/kernels.h"
#include "support/guard.h"
#include "support/half.h"
#include "support/random.h"
#include "support/test.h"

#include <float.h>
#include <math.h>

enum { MOST = 65536 };

/* What a head becomes. Scales are kept as they are stored. */
struct head {
    int8_t q[MOST];
    union {
        float f32[MOST / 32];
        uint16_t f16[MOST / 32];
    } scales;
};

static const int32_t scale_dtypes[] = {POSENC_F32, POSENC_F16};

/* Rounding a quotient of floats to double first changes nothing: Figueroa 1995. */
static float quotient(float a, float b)
{
    return (float)((double)a / (double)b);
}

/* The scale of a group by its definition. */
static double scale_of(const float *y, size_t group, int32_t dtype)
{
    float a = 0, d;

    for (size_t c = 0; c < group; c++) {
        if (!isfinite(y[c])) return (double)NAN;
        a = fmaxf(a, fabsf(y[c]));
    }
    d = quotient(a, 127);
    if (dtype == POSENC_F16) return d > 65504 ? 65504 : test_widen(test_narrow((double)d, dtype),
                                                                   dtype);
    return (double)fminf(d, nextafterf(FLT_MAX / 127, 0));
}

/* How far a stored channel may be from y, as include/posenc/cache.h states it. */
static long double error_bound(double d, int32_t dtype)
{
    const long double bound = (long double)d / 2 * (1 + 0x1p-15L);

    if (dtype == POSENC_F16) return d < 0x1p-14 ? fmaxl(bound, 0x1p-18L) : bound;
    return d < (double)FLT_MIN ? fmaxl(bound, 0x1p-143L) : bound;
}

static void check_group(const float *y, size_t group, const int8_t *q, double stored, int32_t dtype)
{
    const double d = scale_of(y, group, dtype), most = 127 * d;

    if (isnan(d)) assert_true(isnan(stored));
    else assert_true(stored == d);
    for (size_t c = 0; c < group; c++) {
        const double value = (double)y[c];

        if (isnan(d) || d <= 0) {
            assert_int_equal(q[c], 0);
            assert_true(isnan(d) || fabsl((long double)value) <= error_bound(d, dtype));
            continue;
        }
        const double t = nearbyint((double)quotient(y[c], (float)d));
        const long double back = (long double)((float)q[c] * (float)d);

        assert_true((double)q[c] == fmax(-127, fmin(127, t)));
        if (fabs(value) > most) {
            assert_int_equal(abs(q[c]), 127);
            if (d >= (dtype == POSENC_F16 ? 65504 : 0x1p121)) continue; /* clamped */
        }
        assert_true(fabsl(back - (long double)value) <= error_bound(d, dtype));
    }
}

static double stored_scale(const struct head *h, size_t g, int32_t dtype)
{
    return test_load(&h->scales, dtype, (int64_t)g);
}

/* Quantises on every ISA: what scalar makes is right, the others make the same, and dequantising
 * is the float product. */
static void check_head(const float *y, size_t groups, size_t group, int32_t dtype)
{
    static struct head expected, got;
    static float back[MOST];
    int32_t isas[TEST_ISAS];
    const size_t n = test_isas(isas), channels = groups * group, size = test_size(dtype);

    for (size_t i = 0; i < n; i++) {
        const struct posenc_kernels *k = posenc_kernels_get(isas[i]);
        struct head *to = i == 0 ? &expected : &got;

        k->quantise(y, groups, group, to->q, &to->scales, dtype);
        assert_memory_equal(to->q, expected.q, channels);
        assert_memory_equal(&to->scales, &expected.scales, groups * size);
        k->dequantise(to->q, &to->scales, dtype, groups, group, back);
        for (size_t c = 0; c < channels; c++) {
            const float x = (float)to->q[c] * (float)stored_scale(to, c / group, dtype);

            assert_true(isnan(x) ? isnan(back[c]) : memcmp(&x, &back[c], sizeof x) == 0);
        }
    }
    for (size_t g = 0; g < groups; g++)
        check_group(y + g * group, group, expected.q + g * group,
                    stored_scale(&expected, g, dtype), dtype);
}

static void fill(float *y, size_t n, int exponent, uint32_t seed)
{
    struct test_random random = {seed};

    for (size_t c = 0; c < n; c++) y[c] = ldexpf(test_unit(&random), exponent);
}

/* Heads of every width that ends differently in vectors, and wide ones. */
static void test_widths(void **state)
{
    static float y[MOST];
    const size_t most = test_quick() ? 70 : 200;

    (void)state;
    for (int s = 0; s < 2; s++) {
        for (size_t n = 1; n <= most; n++) {
            fill(y, n, (int)(n % 5) - 2, (uint32_t)n);
            check_head(y, 1, n, scale_dtypes[s]);
        }
        for (size_t groups = 1; groups <= 5; groups++) {
            fill(y, groups * 32, 1, (uint32_t)groups);
            check_head(y, groups, 32, scale_dtypes[s]);
        }
        fill(y, MOST, 0, 3);
        check_head(y, 1, MOST, scale_dtypes[s]);
        check_head(y, 1, MOST - 1, scale_dtypes[s]);
        check_head(y, MOST / 32, 32, scale_dtypes[s]);
    }
}

/* Every exponent, around the ends of F32, F16 and their subnormals too, and odd largest values. */
static void test_magnitudes(void **state)
{
    struct test_random random = {9};
    const int heads = test_quick() ? 2 : 12;
    float y[48];

    (void)state;
    for (int s = 0; s < 2; s++)
        for (int exponent = -150; exponent <= 128; exponent++)
            for (int i = 0; i < heads; i++) {
                fill(y, 48, exponent, test_bits(&random));
                check_head(y, 1, 48, scale_dtypes[s]);
            }
    /* the largest of all; the last that F16 holds, and the neighbours of where it ends */
    static const float largest[] = {FLT_MAX, -FLT_MAX, 127 * 65504.0f, 127 * 65519.0f,
                                    127 * 65520.0f, 127.5f * 65504.0f, 0x1p24f, 127 * 0x1p-24f,
                                    127 * 0x1p-25f, 127 * 0x1.8p-24f, 63 * 0x1p-24f, 0x1p-149f,
                                    63 * 0x1p-149f, 64 * 0x1p-149f, 190 * 0x1p-149f, FLT_MIN};

    for (size_t i = 0; i < sizeof largest / sizeof *largest; i++)
        for (int s = 0; s < 2; s++)
            for (int step = -2; step <= 2; step++) {
                float x = largest[i];

                for (int j = 0; j < abs(step); j++) x = nextafterf(x, step < 0 ? 0 : 2 * x);
                if (!isfinite(x)) continue;
                for (int c = 0; c < 48; c++) y[c] = x * ((float)(c - 24) / 24);
                y[17] = x;
                check_head(y, 1, 48, scale_dtypes[s]);
            }
}

/* Halves between two integers go to the even one. With a scale of 1 quotients are exact. */
static void test_ties(void **state)
{
    static struct head got;
    int32_t isas[TEST_ISAS];
    float y[256];

    (void)state;
    for (int c = 0; c < 254; c++) y[c] = (float)(c - 127) + 0.5f;
    y[254] = 127;
    y[255] = -127;
    for (size_t i = 0, n = test_isas(isas); i < n; i++)
        for (int s = 0; s < 2; s++) {
            posenc_kernels_get(isas[i])->quantise(y, 1, 256, got.q, &got.scales, scale_dtypes[s]);
            assert_true(stored_scale(&got, 0, scale_dtypes[s]) == 1);
            for (int c = 0; c < 254; c++) {
                const int below = c - 127;

                assert_int_equal(got.q[c], below % 2 ? below + 1 : below);
            }
        }
    check_head(y, 1, 256, POSENC_F32);
}

/* A channel that takes up two thirds of what the bound adds to half a scale: quotient and product
 * are rounded in the same direction. */
static void test_bound(void **state)
{
    static struct head got;
    const float y[2] = {0x1.06321cp+23f, 0x1.0108d0p+23f};

    (void)state;
    check_head(y, 1, 2, POSENC_F32);
    posenc_kernels_get(POSENC_ISA_DEFAULT)->quantise(y, 1, 2, got.q, &got.scales, POSENC_F32);
    const long double d = (long double)got.scales.f32[0];
    const long double back = (long double)((float)got.q[1] * got.scales.f32[0]);

    assert_true(fabsl(back - (long double)y[1]) > d / 2 * (1 + 0x1p-15L / 1.52L));
}

/* A group that holds a NaN or an infinity is NaN as a whole, its neighbours are not touched. */
static void test_not_finite(void **state)
{
    static const uint32_t bits[] = {0x7fc00000, 0xffc00001, 0x7f800001, 0x7f800000, 0xff800000};
    static struct head got, plain;
    int32_t isas[TEST_ISAS];
    float y[96], clean[96];

    (void)state;
    fill(clean, 96, 2, 5);
    for (size_t b = 0; b < sizeof bits / sizeof *bits; b++)
        for (size_t c = 32; c < 64; c++) {
            memcpy(y, clean, sizeof y);
            memcpy(&y[c], &bits[b], 4);
            for (size_t i = 0, n = test_isas(isas); i < n; i++)
                for (int s = 0; s < 2; s++) {
                    const struct posenc_kernels *k = posenc_kernels_get(isas[i]);
                    const size_t size = test_size(scale_dtypes[s]);
                    const unsigned char *scales = (const unsigned char *)&got.scales;

                    k->quantise(clean, 3, 32, plain.q, &plain.scales, scale_dtypes[s]);
                    k->quantise(y, 3, 32, got.q, &got.scales, scale_dtypes[s]);
                    if (s == 0) assert_memory_equal(&got.scales.f32[1], &bits[0], 4);
                    else assert_int_equal(got.scales.f16[1], 0x7e00);
                    for (int j = 32; j < 64; j++) assert_int_equal(got.q[j], 0);
                    assert_memory_equal(got.q, plain.q, 32);
                    assert_memory_equal(got.q + 64, plain.q + 64, 32);
                    assert_memory_equal(scales, &plain.scales, size);
                    assert_memory_equal(scales + 2 * size,
                                        (unsigned char *)&plain.scales + 2 * size, size);
                }
            check_head(y, 3, 32, POSENC_F16);
            check_head(y, 1, 96, POSENC_F32);
        }
}

static void test_zeros(void **state)
{
    static struct head got;
    float y[70];

    (void)state;
    for (int c = 0; c < 70; c++) y[c] = c % 2 ? -0.0f : 0.0f;
    for (int s = 0; s < 2; s++) {
        check_head(y, 1, 70, scale_dtypes[s]);
        posenc_kernels_get(POSENC_ISA_DEFAULT)->quantise(y, 1, 70, got.q, &got.scales,
                                                         scale_dtypes[s]);
        assert_true(stored_scale(&got, 0, scale_dtypes[s]) == 0);
        assert_false(signbit(stored_scale(&got, 0, scale_dtypes[s])));
    }
}

/*
 * What was stored is stored again: the same integers and the same scale, if that is no subnormal.
 * The largest integer is 127 then. 127 times a scale of F16 is exact; one of F32 is M, the integer
 * next to a / 127 with a a multiple of 128 (in units of M, a >= 2^30), so 127 M is within 63.5 of a
 * and rounds to a, or it is below 2^30 and rounds by at most 32: divided by 127 less than 1/2.
 */
static void test_again(void **state)
{
    static struct head first, second;
    const struct posenc_kernels *k = posenc_kernels_get(POSENC_ISA_DEFAULT);
    const int heads = test_quick() ? 500 : 5000;
    float y[64];

    (void)state;
    for (int i = 0; i < heads; i++)
        for (int s = 0; s < 2; s++) {
            const int32_t dtype = scale_dtypes[s];

            fill(y, 64, i % 20 - 5, (uint32_t)i);
            k->quantise(y, 1, 64, first.q, &first.scales, dtype);
            k->dequantise(first.q, &first.scales, dtype, 1, 64, y);
            k->quantise(y, 1, 64, second.q, &second.scales, dtype);
            assert_memory_equal(first.q, second.q, 64);
            assert_memory_equal(&first.scales, &second.scales, test_size(dtype));
        }
}

static void check_guarded(size_t groups, size_t group, enum test_place place, int32_t dtype)
{
    const size_t channels = groups * group, size = test_size(dtype);
    struct test_guard floats = test_guard_new(channels * 4), bytes = test_guard_new(channels);
    struct test_guard scales = test_guard_new(groups * size);
    float *y = test_guard_at(&floats, channels * 4, 4, place);
    int8_t *q = test_guard_at(&bytes, channels, 1, place);
    void *scale = test_guard_at(&scales, groups * size, size, place);
    int32_t isas[TEST_ISAS];

    for (size_t i = 0, n = test_isas(isas); i < n; i++) {
        const struct posenc_kernels *k = posenc_kernels_get(isas[i]);

        memset(bytes.first, 0x5a, bytes.capacity);
        memset(scales.first, 0x5a, scales.capacity);
        fill(y, channels, 0, 1);
        k->quantise(y, groups, group, q, scale, dtype);
        for (unsigned char *p = bytes.first; p < bytes.first + bytes.capacity; p++)
            if (p < (unsigned char *)q || p >= (unsigned char *)q + channels)
                assert_int_equal(*p, 0x5a);
        for (unsigned char *p = scales.first; p < scales.first + scales.capacity; p++)
            if (p < (unsigned char *)scale || p >= (unsigned char *)scale + groups * size)
                assert_int_equal(*p, 0x5a);
        memset(floats.first, 0x5a, floats.capacity);
        k->dequantise(q, scale, dtype, groups, group, y);
        for (unsigned char *p = floats.first; p < floats.first + floats.capacity; p++)
            if (p < (unsigned char *)y || p >= (unsigned char *)(y + channels))
                assert_int_equal(*p, 0x5a);
    }
    test_guard_free(&floats);
    test_guard_free(&bytes);
    test_guard_free(&scales);
}

/* Nothing is read or written beyond the ends of rows and scales. */
static void test_guards(void **state)
{
    (void)state;
    for (int place = 0; place < TEST_PLACES; place++)
        for (int s = 0; s < 2; s++) {
            for (size_t n = 1; n <= 67; n++)
                check_guarded(1, n, (enum test_place)place, scale_dtypes[s]);
            for (size_t groups = 1; groups <= 4; groups++)
                check_guarded(groups, 32, (enum test_place)place, scale_dtypes[s]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),     cmocka_unit_test(test_magnitudes),
        cmocka_unit_test(test_ties),       cmocka_unit_test(test_bound),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_again),      cmocka_unit_test(test_guards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
