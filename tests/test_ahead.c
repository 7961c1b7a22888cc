/* SPDX-License-Identifier: MIT */
/* Kernels that read ahead where that is faster on this CPU: the bits are those without it. */
#include "kernels.h"

#include "support/half.h"
#include "support/random.h"
#include "support/test.h"

enum { HEADS = 3, PAIRS = 128, TOKENS = 3, MOST = TOKENS * HEADS * 2 * PAIRS };

struct data {
    float cos[TOKENS * PAIRS], sin[TOKENS * PAIRS]; /* or the folded rows of a norm, in one piece */
    char src[MOST * 4], dst[2][MOST * 4];
};

static void fill(struct data *d, int32_t dtype, struct test_random *random)
{
    for (int64_t i = 0; i < TOKENS * PAIRS; i++) {
        d->cos[i] = test_unit(random);
        d->sin[i] = test_unit(random);
    }
    for (int64_t i = 0; i < MOST; i++)
        test_store(d->src, dtype, i, test_unit(random));
    memset(d->dst, 0, sizeof(d->dst));
}

static void rotate(const struct posenc_kernels *kernels, struct data *d, int layout, int32_t from,
                   int32_t to, size_t pairs)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        const ptrdiff_t in = (ptrdiff_t)(2 * pairs * test_size(from));
        const ptrdiff_t out = (ptrdiff_t)(2 * pairs * test_size(to));
        struct posenc_rotate_job job = {
            .cos = d->cos, .sin = d->sin, .row_stride = PAIRS, .tokens = TOKENS, .pairs = pairs,
            .partner = pairs, .ahead = ahead, .sides = 2};
        job.side[0] = (struct posenc_rotate_side){
            d->src, d->dst[ahead], HEADS * in, in, HEADS * out, out, HEADS - 1};
        job.side[1] = (struct posenc_rotate_side){
            d->src + (HEADS - 1) * in, d->dst[ahead] + (HEADS - 1) * out, HEADS * in, in,
            HEADS * out, out, 1};
        kernels->rotate[layout][from - 1][to - 1](&job);
    }
    assert_memory_equal(d->dst[0], d->dst[1], sizeof(d->dst[0]));
}

static struct posenc_add_job add_job(struct data *d, int ahead, int32_t from, int32_t to,
                                     size_t count, size_t copies)
{
    return (struct posenc_add_job){
        .x = d->src, .y = d->dst[ahead], .row = d->cos, .odd = d->sin, .tokens = 1,
        .count = count, .copies = copies, .x_copy = (ptrdiff_t)(count * test_size(from)),
        .y_copy = (ptrdiff_t)(count * test_size(to)), .scale = 1.25f, .ahead = ahead * 1024};
}

static void add(const struct posenc_kernels *kernels, struct data *d, int32_t from, int32_t to,
                size_t count, size_t copies)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        const struct posenc_add_job job = add_job(d, ahead, from, to, count, copies);
        kernels->add[from - 1][to - 1](&job);
    }
    assert_memory_equal(d->dst[0], d->dst[1], sizeof(d->dst[0]));
}

static void add_pairs(const struct posenc_kernels *kernels, struct data *d, int32_t from,
                      int32_t to, size_t pairs)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        const struct posenc_add_job job = add_job(d, ahead, from, to, pairs, 1);
        kernels->add_pairs[from - 1][to - 1](&job);
    }
    assert_memory_equal(d->dst[0], d->dst[1], sizeof(d->dst[0]));
    for (int ahead = 0; ahead < 2; ahead++) {
        const struct posenc_add_job job = add_job(d, ahead, from, to, pairs, 1);
        kernels->write_pairs[to - 1](&job);
    }
    assert_memory_equal(d->dst[0], d->dst[1], sizeof(d->dst[0]));
}

static void turn_norms(const struct posenc_kernels *kernels, struct data *d, int layout,
                       int32_t from, int32_t to, size_t pairs)
{
    posenc_norm_turn_kernel *const kernel = kernels->norm_turn[layout][from - 1][to - 1];
    for (int ahead = 0; kernel && ahead < 2; ahead++) {
        const struct posenc_norm_turn_job job = {
            .turn = {.src = d->src, .dst = d->dst[ahead],
                     .src_head = (ptrdiff_t)(2 * pairs * test_size(from)),
                     .dst_head = (ptrdiff_t)(2 * pairs * test_size(to)), .heads = HEADS,
                     .c = d->cos, .s = d->sin, .count = pairs, .partner = pairs,
                     .dst_partner = pairs},
            .n = (float)(2 * pairs), .eps = 1e-6f, .scale = 1.0f, .ahead = ahead};
        kernel(&job);
    }
    assert_memory_equal(d->dst[0], d->dst[1], sizeof(d->dst[0]));
}

static void reading_ahead_changes_no_bit(void **state)
{
    static struct data d;
    struct test_random random = {11};
    int32_t isas[TEST_ISAS];
    const size_t all = test_isas(isas);
    (void)state;
    for (size_t i = 0; i < all; i++)
        for (int type = 0; type < 9; type++) {
            const struct posenc_kernels *kernels = posenc_kernels_get(isas[i]);
            const int32_t from = POSENC_F32 + type / 3, to = POSENC_F32 + type % 3;
            for (size_t pairs = 1; pairs <= PAIRS; pairs += test_quick() ? 5 : 1) {
                fill(&d, from, &random);
                rotate(kernels, &d, 0, from, to, pairs);
                rotate(kernels, &d, 1, from, to, pairs);
                add(kernels, &d, from, to, 2 * pairs, 1);
                add(kernels, &d, from, to, 2 * pairs, TOKENS);
                add_pairs(kernels, &d, from, to, pairs);
            }
            for (size_t pairs = 32; pairs <= 64; pairs += 32)
                for (int layout = 0; layout < 2; layout++)
                    turn_norms(kernels, &d, layout, from, to, pairs);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reading_ahead_changes_no_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
