/* SPDX-License-Identifier: MIT */
/* Permutation past the caches: the kernels asked for it, and calls large enough to ask. */
#include "../src/kernels.h"
#include "support/guard.h"
#include "support/random.h"
#include "support/test.h"

/* Where element `at` of a window of `pairs` pairs comes from. */
static size_t source(size_t at, size_t pairs, int32_t to)
{
    if (to == POSENC_ADJACENT) return at % 2 * pairs + at / 2;
    return at < pairs ? 2 * at : 2 * (at - pairs) + 1;
}

static void fill(unsigned char *bytes, size_t size)
{
    struct test_random random = {(uint32_t)size};

    for (size_t i = 0; i < size; i += 4) {
        uint32_t bits = test_bits(&random);

        memcpy(bytes + i, &bits, size - i < 4 ? size - i : 4);
    }
}

/* Heads of `out`, `step` bytes apart, are the permuted heads of `in`, and all between is 0x5a. */
static void check(const unsigned char *in, const unsigned char *out, size_t heads, size_t pairs,
                  size_t size, size_t step, int32_t to)
{
    const size_t bytes = 2 * pairs * size;

    for (size_t h = 0; h < heads; h++) {
        unsigned char expected[1024];

        for (size_t c = 0; c < 2 * pairs; c++)
            memcpy(expected + c * size, in + h * bytes + source(c, pairs, to) * size, size);
        assert_memory_equal(out + h * step, expected, bytes);
        for (size_t i = bytes; i < step && h + 1 < heads; i++)
            assert_int_equal(out[h * step + i], 0x5a);
    }
}

/* Heads of `bytes` each with gaps, which need not be whole lines, at every place between guards. */
static void check_kernel(size_t bytes, size_t gap, size_t log2_size, int32_t to)
{
    enum { HEADS = 5 };
    const size_t size = (size_t)1 << log2_size, step = bytes + gap;
    const size_t extent = (HEADS - 1) * step + bytes;
    struct test_guard from = test_guard_new(HEADS * bytes), onto = test_guard_new(extent + size);

    for (int place = 0; place < TEST_PLACES; place++) {
        unsigned char *in = test_guard_at(&from, HEADS * bytes, size, TEST_AT_END);
        unsigned char *out = test_guard_at(&onto, extent, size, (enum test_place)place);
        const struct posenc_permute_job job = {
            .src = (const char *)in,
            .dst = (char *)out,
            .src_head = (ptrdiff_t)bytes,
            .dst_head = (ptrdiff_t)step,
            .heads = HEADS,
            .pairs = bytes / size / 2,
            .ahead = 1,
            .stream = 1,
        };

        fill(in, HEADS * bytes);
        memset(out, 0x5a, extent);
        posenc_kernels_get(POSENC_ISA_DEFAULT)->permute[to - 1][log2_size - 1](&job);
        check(in, out, HEADS, job.pairs, size, step, to);
    }
    test_guard_free(&from);
    test_guard_free(&onto);
}

static void test_kernels(void **state)
{
    (void)state;
    static const size_t bytes[] = {16, 64, 96, 128, 160, 256, 320, 512, 1024};
    static const size_t gaps[] = {0, 64, 192, 8};

    for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++)
        for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
            for (size_t log2_size = 1; log2_size <= 3; log2_size++) {
                check_kernel(bytes[b], gaps[g], log2_size, POSENC_ADJACENT);
                check_kernel(bytes[b], gaps[g], log2_size, POSENC_SPLIT_HALF);
            }
}

/* Two sequences of keys, 34 MiB in all, whose places in the output are `gap` channels longer. */
static void check_call(enum test_place place, int64_t gap, int32_t to)
{
    enum { B = 2, T = 8704, H = 8, D = 128 };
    const int64_t sequence = T * H * D;
    const size_t size = (size_t)(B * sequence) * 2, extent = size + 2 * (size_t)gap;
    struct test_guard from = test_guard_new(size), onto = test_guard_new(extent + 2);
    unsigned char *x = test_guard_at(&from, size, 2, TEST_AT_END);
    unsigned char *y = test_guard_at(&onto, extent, 2, place);
    posenc_tensor in, out;
    posenc_error error = {0, ""};

    fill(x, size);
    memset(y, 0x5a, extent);
    posenc_tensor_contiguous(&in, x, POSENC_F16, B, T, H, D);
    posenc_tensor_contiguous(&out, y, POSENC_F16, B, T, H, D);
    out.stride[0] += gap;
    test_guard_protect(&from, 1);
    test_ok(posenc_permute_channels(&in, &out, D, 0, to, &error), &error);
    for (int64_t b = 0; b < B; b++)
        check(x + 2 * b * sequence, y + 2 * b * out.stride[0], T * H, D / 2, 2, 2 * D, to);
    for (size_t i = 0; i < 2 * (size_t)gap; i++)
        assert_int_equal(y[2 * (size_t)sequence + i], 0x5a);
    test_guard_free(&from);
    test_guard_free(&onto);
}

static void test_calls(void **state)
{
    (void)state;
    check_call(TEST_AT_START, 0, POSENC_ADJACENT);
    check_call(TEST_AT_END, 4096, POSENC_SPLIT_HALF);
    check_call(TEST_ODD, 0, POSENC_SPLIT_HALF);
    check_call(TEST_AT_START, 5, POSENC_ADJACENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests_name("permute_stream", tests, NULL, NULL);
}
