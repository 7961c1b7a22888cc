/* SPDX-License-Identifier: MIT */
/* 8-bit storage against numpy (make_cache_int8.py): integers and scales bit for bit, and the bound
 * of the error. */
#include "support/half.h"
#include "support/numbers.h"
#include "support/random.h"
#include "support/test.h"

#include <float.h>
#include <math.h>

enum { GROUPS = 10000, BLOCK = 1000, WIDEST = 32, HEADS = 5, BLOCKS = GROUPS / BLOCK };
enum way { COPY, APPEND, WAYS };

static const char data_file[] = "cache_int8.txt";

/* Shapes that both sides of a run share: `split` groups in a head of n * split channels. */
struct example {
    const char *name;
    int n, split;
    int32_t scale_dtype, source;
    uint32_t seed;
};

static const struct example examples[] = {
    {"head-f32", 24, 1, POSENC_F32, POSENC_F32, 1},
    {"head-f16", 24, 1, POSENC_F16, POSENC_F32, 2},
    {"groups-f32", 32, 4, POSENC_F32, POSENC_F32, 3},
    {"groups-f16", 32, 2, POSENC_F16, POSENC_F32, 4},
    {"from-f16", 32, 1, POSENC_F32, POSENC_F16, 5},
    {"from-bf16", 32, 4, POSENC_F16, POSENC_BF16, 6},
};

static unsigned char source[GROUPS * WIDEST * sizeof(float)];
static int8_t stored[GROUPS * WIDEST];
static unsigned char scales[GROUPS * sizeof(float)];

/* How group() of the script makes its numbers. */
static void make_group(struct test_random *random, int kind, int n, double *x)
{
    int size = (int)((test_next(random) >> 16) % 266) - 150;
    if (kind >= 12)
        size = kind % 4 * 4 - 6;
    for (int i = 0; i < n; i++)
        x[i] = (double)test_unit(random);
    int at = (int)((test_next(random) >> 16) % (uint32_t)n), down = (size % 13 + 13) % 13;
    for (int i = 0; i < n; i++) {
        if (kind == 0 || (kind == 6 && i != at))
            x[i] *= 0.0;
        else if (kind == 1)
            x[i] = i == at ? 127 : floor(x[i] * 127) + 0.5;
        else if (kind == 4)
            x[i] = ldexp(x[i], -(down + 12));
        else if (kind == 5)
            x[i] = ldexp(x[i], (size % 8 + 8) % 8 + 20);
        else if (kind != 6)
            x[i] = ldexp(x[i], size);
        x[i] = (double)(float)x[i];
    }
    if (kind == 2)
        x[at] = NAN;
    if (kind == 3)
        x[at] = -INFINITY;
    if (kind == 7)
        x[at] = (double)FLT_MAX;
}

static void make_source(const struct example *e)
{
    struct test_random random = {e->seed};
    double x[WIDEST];
    for (int64_t g = 0; g < GROUPS; g++) {
        make_group(&random, (int)(g % 16), e->n, x);
        for (int i = 0; i < e->n; i++)
            test_store(source, e->source, g * e->n + i, x[i]);
    }
}

/* Into a cache of I8, from one of the source's type or by appending. */
static void store(const struct example *e, enum way way)
{
    const int64_t channels = e->n * e->split, tokens = GROUPS / HEADS / e->split;
    posenc_error error = {0, ""};
    posenc_append_params params;
    posenc_tensor src;
    posenc_cache cache, plain;
    memset(stored, 0x7b, sizeof(stored));
    memset(scales, 0x7b, sizeof(scales));
    posenc_tensor_contiguous(&src, source, e->source, 1, tokens, HEADS, channels);
    posenc_cache_plain(&plain, &src);
    posenc_cache_init(&cache);
    cache.kind = POSENC_CACHE_CONTIGUOUS;
    posenc_tensor_contiguous(&cache.rows, stored, POSENC_I8, 1, tokens, HEADS, channels);
    posenc_tensor_contiguous(&cache.scales, scales, e->scale_dtype, 1, tokens, HEADS, e->split);
    posenc_append_params_init(&params);
    if (way == COPY)
        test_ok(posenc_cache_copy(&plain, 0, 0, NULL, &cache, 0, 0, tokens, &error), &error);
    else
        test_ok(posenc_cache_append(&params, &src, &cache, &error), &error);
}

static void check_hashes(const struct example *e)
{
    double words[4 * BLOCKS];
    const size_t size = test_size(e->scale_dtype);
    assert_int_equal(test_numbers(data_file, e->name, "hashes", words, 4 * BLOCKS), 4 * BLOCKS);
    for (int b = 0; b < BLOCKS; b++) {
        const double *w = words + 4 * b;
        uint64_t numbers = (uint64_t)w[0] << 32 | (uint64_t)w[1];
        uint64_t steps = (uint64_t)w[2] << 32 | (uint64_t)w[3];
        const size_t first = (size_t)b * BLOCK;
        if (test_hash(TEST_HASH_START, scales + first * size, BLOCK, size) != steps)
            fail_msg("%s: other scales among groups %d to %d", e->name, b * BLOCK,
                     b * BLOCK + BLOCK - 1);
        if (test_hash(TEST_HASH_START, stored + first * (size_t)e->n, BLOCK * (size_t)e->n, 1) !=
            numbers)
            fail_msg("%s: other integers among groups %d to %d", e->name, b * BLOCK,
                     b * BLOCK + BLOCK - 1);
    }
}

static void numpy_is_met(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(examples) / sizeof(examples[0]); n++) {
        make_source(&examples[n]);
        for (enum way way = COPY; way < WAYS; way++) {
            store(&examples[n], way);
            check_hashes(&examples[n]);
        }
    }
}

/* The bound in cache.h of numbers stored with that scale. */
static double bound_of(double scale, int32_t dtype)
{
    double half = scale / 2 * (1 + 0x1p-15), least = dtype == POSENC_F16 ? 0x1p-14 : 0x1p-126;
    return scale < least ? fmax(half, dtype == POSENC_F16 ? 0x1p-18 : 0x1p-143) : half;
}

/* Every number, cut where F16 has no larger scale, is within its bound; a group that is not finite
 * is NaN. */
static void the_bound_holds(void **state)
{
    size_t checked = 0, lost = 0;
    (void)state;
    for (size_t n = 0; n < sizeof(examples) / sizeof(examples[0]); n++) {
        const struct example *e = &examples[n];
        make_source(e);
        store(e, APPEND);
        for (int64_t g = 0; g < GROUPS; g++) {
            double scale = test_load(scales, e->scale_dtype, g);
            if (isnan(scale)) {
                lost++;
                continue;
            }
            for (int64_t i = g * e->n; i < (g + 1) * e->n; i++, checked++) {
                double x = test_load(source, e->source, i), got = (double)stored[i] * scale;
                double most = e->scale_dtype == POSENC_F16 ? 127.0 * 65504 : (double)FLT_MAX;
                if (!(fabs(got - fmax(-most, fmin(most, x))) <= bound_of(scale, e->scale_dtype)))
                    fail_msg("%s: %g stored as %d times %g", e->name, x, stored[i], scale);
            }
        }
    }
    assert_true(checked > 1000000);
    assert_true(lost >= 6 * 2 * (GROUPS / 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numpy_is_met),
                                       cmocka_unit_test(the_bound_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
