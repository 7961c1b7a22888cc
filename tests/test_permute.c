/* SPDX-License-Identifier: MIT */
/* Rows and channels between the pair layouts, against the index formula of layouts.h. */
#include "support/guard.h"
#include "support/half.h"
#include "support/random.h"
#include "support/test.h"
#include "support/view.h"

/* The row of the source that comes to row `to_row` of a head, from the definition. */
static size_t source(size_t to_row, size_t r, size_t offset, int32_t to)
{
    if (to_row < offset || to_row >= offset + r) return to_row;
    size_t at = to_row - offset;

    for (size_t i = 0; i < r / 2; i++) {
        for (size_t s = 0; s < 2; s++) {
            size_t adjacent = 2 * i + s, split_half = s * (r / 2) + i;

            if (to == POSENC_ADJACENT && adjacent == at) return offset + split_half;
            if (to == POSENC_SPLIT_HALF && split_half == at) return offset + adjacent;
        }
    }
    fail_msg("no source of %zu", to_row);
    return 0;
}

static void fill(unsigned char *bytes, size_t size, struct test_random *random)
{
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)test_bits(random);
}

struct shape {
    size_t heads, head_dim, rotary_dim, offset, row_bytes;
};

static void expect(unsigned char *out, const unsigned char *in, const struct shape *s, int32_t to)
{
    for (size_t h = 0; h < s->heads; h++) {
        for (size_t c = 0; c < s->head_dim; c++) {
            size_t from = source(c, s->rotary_dim, s->offset, to);

            memcpy(out + (h * s->head_dim + c) * s->row_bytes,
                   in + (h * s->head_dim + from) * s->row_bytes, s->row_bytes);
        }
    }
}

/* Out of place, in place both ways of saying it, and there and back; guard pages on both sides. */
static void check_rows(const struct shape *s, int32_t to)
{
    const size_t size = s->heads * s->head_dim * s->row_bytes;
    struct test_guard from = test_guard_new(size), onto = test_guard_new(size);
    unsigned char *expected = malloc(size);
    struct test_random random = {(uint32_t)(size + s->rotary_dim)};
    posenc_error error = {0, ""};

    for (int place = 0; place < TEST_PLACES; place++) {
        if (place == TEST_ODD && size + 1 > from.capacity) continue;
        unsigned char *in = test_guard_at(&from, size, 1, (enum test_place)place);
        unsigned char *out = test_guard_at(&onto, size, 1, (enum test_place)place);

        fill(in, size, &random);
        expect(expected, in, s, to);
        test_guard_protect(&from, 1);
        test_ok(posenc_permute_rows(in, out, s->heads, s->head_dim, s->rotary_dim, s->offset,
                                    s->row_bytes, to, &error), &error);
        assert_memory_equal(out, expected, size);
        test_guard_protect(&from, 0);
        test_ok(posenc_permute_rows(in, place ? NULL : in, s->heads, s->head_dim, s->rotary_dim,
                                    s->offset, s->row_bytes, to, &error), &error);
        assert_memory_equal(in, expected, size);
        expect(out, expected, s, POSENC_ADJACENT + POSENC_SPLIT_HALF - to);
        test_ok(posenc_permute_rows(in, in, s->heads, s->head_dim, s->rotary_dim, s->offset,
                                    s->row_bytes, POSENC_ADJACENT + POSENC_SPLIT_HALF - to, &error),
                &error);
        assert_memory_equal(in, out, size);
    }
    free(expected);
    test_guard_free(&from);
    test_guard_free(&onto);
}

static void check_both(struct shape s)
{
    check_rows(&s, POSENC_ADJACENT);
    check_rows(&s, POSENC_SPLIT_HALF);
}

/* Every width up to 70 pairs, whole heads and windows within them. */
static void test_widths(void **state)
{
    (void)state;
    static const size_t bytes[] = {1, 2, 3, 4, 8, 16, 33};

    for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++) {
        for (size_t r = 2; r <= 140; r += test_quick() && r > 40 ? 18 : 2) {
            check_both((struct shape){2, r, r, 0, bytes[b]});
            check_both((struct shape){3, r + 5, r, 0, bytes[b]});
            check_both((struct shape){2, r + 7, r, 4, bytes[b]});
        }
    }
}

/* Rows beyond every buffer of the library, and heads beyond it. */
static void test_large(void **state)
{
    (void)state;
    check_both((struct shape){2, 16, 12, 3, 20000});
    check_both((struct shape){1, 64, 64, 0, 8192});
    check_both((struct shape){2, 130, 128, 1, 129});
    check_both((struct shape){1, 6000, 5000, 100, 2});
    check_both((struct shape){1, 3002, 3000, 2, 4});
    check_both((struct shape){1, 2052, 2050, 0, 8});
    check_both((struct shape){40, 128, 128, 0, 2});
    check_both((struct shape){40, 96, 64, 32, 4});
}

/* The widest window there is; only its ends and a few rows between are looked at. */
static void test_widest(void **state)
{
    (void)state;
    enum { R = 65536 };
    uint16_t *x = malloc(R * sizeof *x);
    posenc_error error = {0, ""};

    for (size_t i = 0; i < R; i++) x[i] = (uint16_t)i;
    test_ok(posenc_permute_rows(x, NULL, 1, R, R, 0, 2, POSENC_ADJACENT, &error), &error);
    for (size_t i = 0; i < R; i++) assert_int_equal(x[i], i % 2 * (R / 2) + i / 2);
    free(x);
}

/* Every memory order and dtype, partial windows, in place and to a view of other strides. */
static void check_channels(enum test_order order, int32_t dtype, int64_t channels, int32_t r,
                           int32_t offset, int32_t to)
{
    const size_t size = dtype == POSENC_F64 ? 8 : test_size(dtype);
    struct test_view in = test_view_new(order, dtype, 2, 3, 3, channels);
    struct test_view out = test_view_new((order + 1) % TEST_ORDERS, dtype, 2, 3, 3, channels);
    struct test_guard from = test_guard_new((size_t)in.elements * size);
    struct test_guard onto = test_guard_new((size_t)out.elements * size);
    char *x = test_guard_at(&from, (size_t)in.elements * size, size, TEST_AT_END);
    char *y = test_guard_at(&onto, (size_t)out.elements * size, size, TEST_AT_END);
    char *before = malloc((size_t)in.elements * size), *after = malloc((size_t)in.elements * size);
    struct test_random random = {(uint32_t)(channels + r)};
    posenc_error error = {0, ""};

    in.tensor.data = x + (size_t)in.origin * size;
    out.tensor.data = y + (size_t)out.origin * size;
    fill((unsigned char *)x, (size_t)in.elements * size, &random);
    memset(y, 0x5a, (size_t)out.elements * size);
    memcpy(before, x, (size_t)in.elements * size);
    memcpy(after, x, (size_t)in.elements * size);
    test_ok(posenc_permute_channels(&in.tensor, &out.tensor, r, offset, to, &error), &error);
    assert_memory_equal(x, before, (size_t)in.elements * size);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t t = 0; t < 3; t++)
            for (int64_t h = 0; h < 3; h++)
                for (int64_t c = 0; c < channels; c++) {
                    int64_t k = (int64_t)source((size_t)c, (size_t)r, (size_t)offset, to);
                    const char *want = before + (size_t)test_view_index(&in, b, t, h, k) * size;

                    assert_memory_equal(y + (size_t)test_view_index(&out, b, t, h, c) * size, want,
                                        size);
                    memcpy(after + (size_t)test_view_index(&in, b, t, h, c) * size, want, size);
                    memset(y + (size_t)test_view_index(&out, b, t, h, c) * size, 0x5a, size);
                }
    for (size_t i = 0; i < (size_t)out.elements * size; i++) assert_int_equal(y[i], 0x5a);
    test_ok(posenc_permute_channels(&in.tensor, r % 4 ? NULL : &in.tensor, r, offset, to, &error),
            &error);
    assert_memory_equal(x, after, (size_t)in.elements * size);
    free(before);
    free(after);
    test_guard_free(&from);
    test_guard_free(&onto);
}

static void test_channels(void **state)
{
    (void)state;
    static const int32_t dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16, POSENC_F64};
    static const int32_t widths[] = {2, 4, 6, 10, 16, 34, 64, 66, 80, 96, 128, 140};

    for (enum test_order order = 0; order < TEST_ORDERS; order++) {
        for (int d = 0; d < 4; d++) {
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w += test_quick() ? 3 : 1) {
                for (int32_t to = POSENC_ADJACENT; to <= POSENC_SPLIT_HALF; to++) {
                    check_channels(order, dtypes[d], widths[w], widths[w], 0, to);
                    check_channels(order, dtypes[d], widths[w] + 9, widths[w], 5, to);
                }
            }
        }
    }
}

/* Heads wider than the buffer in place. */
static void test_wide_channels(void **state)
{
    (void)state;
    check_channels(TEST_CONTIGUOUS, POSENC_F32, 2500, 2500, 0, POSENC_ADJACENT);
    check_channels(TEST_GAPS, POSENC_F64, 1500, 1498, 1, POSENC_SPLIT_HALF);
}

/* Shapes of one element and none: strides mean nothing there, and nothing is done. */
static void test_degenerate(void **state)
{
    (void)state;
    float x[4] = {1, 2, 3, 4};
    posenc_error error = {0, ""};
    posenc_tensor t = {x, POSENC_F32, {1, 1, 1, 4}, {77, -5, 1 << 30, 1}};

    test_ok(posenc_permute_channels(&t, NULL, 4, 0, POSENC_ADJACENT, &error), &error);
    assert_true(x[0] == 1 && x[1] == 3 && x[2] == 2 && x[3] == 4);
    t.shape[1] = 0;
    t.data = NULL;
    test_ok(posenc_permute_channels(&t, NULL, 4, 0, POSENC_ADJACENT, &error), &error);
    test_ok(posenc_permute_rows(NULL, NULL, 0, 4, 4, 0, 8, POSENC_ADJACENT, &error), &error);
}

/* Scores stay: q and k permuted alike and rotated by the other layout. */
static void test_scores(void **state)
{
    (void)state;
    enum { TOKENS = 3, D = 24, R = 16, OFFSET = 4, SIZE = TOKENS * D };
    float q[SIZE], k[SIZE];
    double scores[2][TOKENS][TOKENS];
    struct test_random random = {7};
    posenc_error error = {0, ""};

    for (int i = 0; i < SIZE; i++) q[i] = test_unit(&random), k[i] = test_unit(&random);
    for (int pass = 0; pass < 2; pass++) {
        posenc_rope_params params = test_params(pass ? POSENC_ADJACENT : POSENC_SPLIT_HALF, D, R);
        float a[SIZE], b[SIZE];

        params.rotary_offset = OFFSET;
        posenc_plan *plan = test_plan(&params);
        memcpy(a, q, sizeof a);
        memcpy(b, k, sizeof b);
        test_ok(posenc_rope_flat(plan, a, b, POSENC_F32, 1, TOKENS, 1, 1, 100, &error), &error);
        for (int i = 0; i < TOKENS; i++)
            for (int j = 0; j < TOKENS; j++) {
                scores[pass][i][j] = 0;
                for (int c = 0; c < D; c++)
                    scores[pass][i][j] += (double)a[i * D + c] * (double)b[j * D + c];
            }
        posenc_plan_free(plan);
        test_ok(posenc_permute_rows(q, q, TOKENS, D, R, OFFSET, 4, POSENC_ADJACENT, &error),
                &error);
        test_ok(posenc_permute_rows(k, k, TOKENS, D, R, OFFSET, 4, POSENC_ADJACENT, &error),
                &error);
    }
    for (int i = 0; i < TOKENS; i++)
        for (int j = 0; j < TOKENS; j++)
            assert_true(scores[0][i][j] - scores[1][i][j] < 1e-13 &&
                        scores[1][i][j] - scores[0][i][j] < 1e-13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),     cmocka_unit_test(test_large),
        cmocka_unit_test(test_widest),     cmocka_unit_test(test_channels),
        cmocka_unit_test(test_wide_channels), cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_scores),
    };
    return cmocka_run_group_tests_name("permute", tests, NULL, NULL);
}
