/* SPDX-License-Identifier: MIT */
/* Append without a norm: the bits of posenc_rotate in every geometry, and nothing else written. */
#include "append_support.h"
#include "support/half.h"

enum { HEADS = 3, WIDEST = 80, ROOM = 400000 };

/* Heads whose window lies inside, and channels that no vector fits. */
struct shape {
    int32_t layout, out_layout, head_dim, rotary_dim, offset;
    int64_t channels;
};
static const struct shape shapes[] = {
    {POSENC_SPLIT_HALF, 0, 64, 64, 0, 64},
    {POSENC_ADJACENT, 0, 64, 64, 0, 64},
    {POSENC_SPLIT_HALF, 0, 80, 36, 11, 80},
    {POSENC_ADJACENT, 0, 80, 36, 11, 80},
    {POSENC_ADJACENT, POSENC_SPLIT_HALF, 48, 32, 16, 48},
    {POSENC_SPLIT_HALF, POSENC_ADJACENT, 48, 32, 16, 32}, /* the window alone */
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static posenc_plan *plan_of(const struct shape *shape, int32_t isa)
{
    posenc_rope_params params = test_params(shape->layout, shape->head_dim, shape->rotary_dim);

    params.rotary_offset = shape->offset;
    params.out_layout = shape->out_layout;
    params.isa = isa;
    params.attention_factor = 1.25;
    return test_plan(&params);
}

static void make_rows(const posenc_plan *plan, const posenc_tensor *src, posenc_tensor *rows)
{
    static float memory[APPEND_ALL * WIDEST];
    posenc_positions positions;
    posenc_error error = {0, ""};

    append_positions(&positions);
    posenc_tensor_contiguous(rows, memory, POSENC_F32, src->shape[0], src->shape[1], 1,
                             2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, &positions, rows, &error), &error);
}

/* What the tokens of src become: by posenc_rotate, or by conversion. */
static void make_plain(const posenc_plan *plan, const struct append_case *c,
                       const posenc_tensor *rows, void *memory)
{
    const posenc_tensor *src = &c->src.tensor;
    int32_t to = c->rows.tensor.dtype;
    posenc_tensor plain;
    posenc_error error = {0, ""};

    posenc_tensor_contiguous(&plain, memory, to, src->shape[0], src->shape[1], src->shape[2],
                             src->shape[3]);
    if (plan) {
        test_ok(posenc_rotate(plan, POSENC_FORWARD, rows, src, &plain, NULL, NULL, &error), &error);
        return;
    }
    for (int64_t i = 0, b = 0; b < src->shape[0]; b++)
        for (int64_t t = 0; t < src->shape[1]; t++)
            for (int64_t h = 0; h < src->shape[2]; h++)
                for (int64_t d = 0; d < src->shape[3]; d++, i++) {
                    int64_t at = test_view_index(&c->src, b, t, h, d) - c->src.origin;
                    test_store(memory, to, i, test_load(src->data, src->dtype, at));
                }
}

static void append(const struct append_case *c)
{
    posenc_error error = {0, ""};

    test_ok(posenc_cache_append(&c->params, &c->src.tensor, &c->cache, &error), &error);
}

/* Token by token: what a decoder does, with views into the same memory. */
static void append_tokens(const struct append_case *whole)
{
    for (int64_t t = 0; t < APPEND_TOKENS; t++) {
        struct append_case c = *whole;
        posenc_tensor *src = &c.src.tensor, rows;

        src->data = (char *)src->data + t * src->stride[1] * (int64_t)test_size(src->dtype);
        src->shape[1] = 1;
        if (c.params.rows) {
            rows = *c.params.rows;
            rows.data = (float *)rows.data + t * rows.stride[1];
            rows.shape[1] = 1;
            c.params.rows = &rows;
        }
        if (c.params.sequences) {
            for (int s = 0; s <= APPEND_SEQUENCES; s++) {
                c.token_starts[s] = whole->token_starts[s] > t;
                if (s < APPEND_SEQUENCES && whole->token_starts[s] <= t)
                    c.starts[s] += t - whole->token_starts[s];
            }
            c.params.token_starts = c.token_starts;
            c.params.starts = c.starts;
        } else if (c.params.keys) {
            c.params.keys += t;
        } else if (c.params.starts) {
            for (int s = 0; s < APPEND_SEQUENCES; s++) c.starts[s] += t;
            c.params.starts = c.starts;
        } else {
            c.params.start += t;
        }
        append(&c);
    }
}

static void check_case(struct append_case *c, const posenc_plan *plan, struct test_random *random)
{
    static uint32_t in[ROOM / 4], out[ROOM / 4], image[ROOM / 4], plain[ROOM / 4];
    int32_t to = c->rows.tensor.dtype;
    size_t bytes = (size_t)c->rows.elements * test_size(to);
    posenc_tensor rows;

    assert_true(bytes <= ROOM && c->src.elements * 4 <= ROOM);
    test_view_fill(&c->src, in, TEST_NAN, 0, c->src.tensor.shape[3], random);
    test_view_at(&c->src, in);
    test_view_at(&c->rows, out);
    c->cache.rows = c->rows.tensor;
    if (plan) {
        make_rows(plan, &c->src.tensor, &rows);
        c->params.rope = plan;
        c->params.rows = &rows;
    }
    if (plan && c->cache.header) {
        int64_t first = c->header.first_key;
        posenc_error error = {0, ""};
        test_ok(posenc_cache_header_init(&c->header, &c->cache, plan, &error), &error);
        c->header.first_key = first;
    }
    make_plain(plan, c, &rows, plain);
    memset(image, 0xa5, bytes);
    append_image(c, plain, image);
    for (int split = 0; split < 2; split++) {
        memset(out, 0xa5, bytes);
        if (split) append_tokens(c);
        else append(c);
        if (memcmp(out, image, bytes)) {
            fail_msg("geometry %d, %s: other bytes", (int)c->geometry, split ? "tokens" : "whole");
        }
    }
}

static void check_all(enum append_geometry geometry)
{
    struct test_random random = {(uint32_t)geometry + 1};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);
    int order = 0;

    for (size_t i = 0; i < n; i++)
        for (int s = 0; s <= SHAPES; s++) {
            const struct shape *shape = &shapes[s % SHAPES];
            posenc_plan *plan = s < SHAPES ? plan_of(shape, isas[i]) : NULL;

            for (int32_t pair = 0; pair < 9; pair++, order++) {
                struct append_case c;

                append_case_new(&c, geometry, pair / 3 + POSENC_F32, pair % 3 + POSENC_F32,
                                (enum test_order)(order % TEST_ORDERS),
                                (enum test_order)(order / 3 % TEST_ORDERS), HEADS,
                                shape->channels);
                c.params.isa = isas[i];
                check_case(&c, plan, &random);
            }
            posenc_plan_free(plan);
        }
}

static void test_contiguous(void **state)
{
    (void)state;
    check_all(APPEND_PLAIN);
    check_all(APPEND_ONE_START);
}

static void test_ring(void **state)
{
    (void)state;
    check_all(APPEND_RING);
    check_all(APPEND_RING_KEPT);
}

static void test_paged(void **state)
{
    (void)state;
    check_all(APPEND_PAGED);
}

static void test_packed(void **state)
{
    (void)state;
    check_all(APPEND_PACKED);
    check_all(APPEND_PACKED_PAGED);
}

static void test_keys(void **state)
{
    (void)state;
    check_all(APPEND_KEYS);
    check_all(APPEND_KEYS_RING);
}

/* Q rotated where it lies: the cache is the tensor itself. */
static void test_in_place(void **state)
{
    (void)state;
    for (int s = 0; s < 4; s++) {
        static uint32_t memory[ROOM / 4], expected[ROOM / 4];
        struct test_random random = {(uint32_t)s};
        struct append_case c;
        posenc_tensor rows, before;
        posenc_error error = {0, ""};
        posenc_plan *plan = plan_of(&shapes[s], POSENC_ISA_DEFAULT);

        append_case_new(&c, APPEND_PLAIN, POSENC_F16, POSENC_F16, TEST_GAPS, TEST_GAPS, HEADS,
                        shapes[s].channels);
        test_view_fill(&c.src, memory, TEST_NAN, 0, shapes[s].channels, &random);
        memcpy(expected, memory, sizeof memory);
        test_view_at(&c.src, expected);
        before = c.src.tensor;
        make_rows(plan, &before, &rows);
        test_ok(posenc_rotate(plan, POSENC_FORWARD, &rows, &before, NULL, NULL, NULL, &error),
                &error);
        test_view_at(&c.src, memory);
        posenc_cache_plain(&c.cache, &c.src.tensor);
        c.params.starts = NULL;
        c.params.rope = plan;
        c.params.rows = &rows;
        append(&c);
        assert_memory_equal(memory, expected, sizeof memory);
        posenc_plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contiguous), cmocka_unit_test(test_ring),
        cmocka_unit_test(test_paged),      cmocka_unit_test(test_packed),
        cmocka_unit_test(test_keys),       cmocka_unit_test(test_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
