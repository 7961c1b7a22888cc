/* SPDX-License-Identifier: MIT */
/* Rotation from one pair layout into the other: the bits of a rotation and a permutation. */
#include "support/half.h"
#include "support/random.h"
#include "support/refuse.h"
#include "support/test.h"
#include "support/view.h"

enum { BATCH = 2, TOKENS = 5, Q_HEADS = 3, K_HEADS = 2 };

/* What one comparison rotates. */
struct sample {
    int32_t isa, layout, from, to, direction, head_dim, width, offset;
    int windows; /* 1: tensors hold the window alone */
    int fused;
    int random_bits;
};

static size_t size_of(int32_t dtype)
{
    return dtype == POSENC_F64 ? 8 : test_size(dtype);
}

static posenc_plan *plan_of(const struct sample *s, int32_t out_layout)
{
    posenc_rope_params params = test_params(s->layout, s->head_dim, s->width);

    params.rotary_offset = s->offset;
    params.isa = s->isa;
    params.out_layout = out_layout;
    params.attention_factor = 1.25;
    return test_plan(&params);
}

/* One side in its memory: in, out across, out by rotation and permutation. */
struct side {
    struct test_view in, out;
    char *x, *y, *expected;
};

static void fill_in(struct side *side, const struct sample *s, struct test_random *random)
{
    for (int64_t i = 0; i < side->in.elements; i++) {
        if (s->from == POSENC_F64)
            ((double *)(void *)side->x)[i] = (double)test_unit(random);
        else if (!s->random_bits)
            test_store(side->x, s->from, i, (double)test_unit(random));
        else if (s->from == POSENC_F32)
            ((uint32_t *)(void *)side->x)[i] = test_bits(random);
        else
            ((uint16_t *)(void *)side->x)[i] = (uint16_t)test_bits(random);
    }
}

static struct side side_of(const struct sample *s, int64_t heads, struct test_random *random)
{
    const int64_t channels = s->windows ? s->width : s->head_dim;
    struct side side = {
        .in = test_view_new(TEST_GAPS, s->from, BATCH, TOKENS, heads, channels),
        .out = test_view_new(TEST_HEADS_FIRST, s->to, BATCH, TOKENS, heads, channels),
    };
    const size_t bytes = (size_t)side.out.elements * size_of(s->to);

    side.x = malloc((size_t)side.in.elements * size_of(s->from));
    side.y = malloc(bytes);
    side.expected = malloc(bytes);
    memset(side.y, 0x5a, bytes);
    memset(side.expected, 0x5a, bytes);
    fill_in(&side, s, random);
    side.in.tensor.data = side.x + (size_t)side.in.origin * size_of(s->from);
    return side;
}

static posenc_tensor *out_of(struct side *side, char *memory)
{
    side->out.tensor.data =
        memory + (size_t)side->out.origin * size_of(side->out.tensor.dtype);
    return &side->out.tensor;
}

static void free_side(struct side *side)
{
    free(side->x);
    free(side->y);
    free(side->expected);
}

static void turn(const struct sample *s, const posenc_plan *plan, struct side *q, struct side *k,
                 int across)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor rows, *q_out = out_of(q, across ? q->y : q->expected);
    posenc_tensor *k_out = out_of(k, across ? k->y : k->expected);
    const int32_t dtype = s->from == POSENC_F64 ? POSENC_F64 : POSENC_F32;

    posenc_positions_start(&positions, 1000);
    if (s->fused) {
        test_ok(posenc_rope(plan, s->direction, &positions, &q->in.tensor, q_out, &k->in.tensor,
                            k_out, &error), &error);
        return;
    }
    void *memory = malloc((size_t)TOKENS * (size_t)s->width * 8);
    posenc_tensor_contiguous(&rows, memory, dtype, 1, TOKENS, 1, s->width);
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
    test_ok(posenc_rotate(plan, s->direction, &rows, &q->in.tensor, q_out, &k->in.tensor, k_out,
                          &error), &error);
    free(memory);
}

static void compare_side(const struct sample *s, struct side *side)
{
    posenc_error error = {0, ""};
    const int64_t count = side->out.elements;

    test_ok(posenc_permute_channels(out_of(side, side->expected), NULL, s->width,
                                    s->windows ? 0 : s->offset,
                                    POSENC_ADJACENT + POSENC_SPLIT_HALF - s->layout, &error),
            &error);
    if (s->to == POSENC_F64 || !s->random_bits
            ? memcmp(side->y, side->expected, (size_t)count * size_of(s->to)) != 0
            : !test_same(side->y, side->expected, s->to, count))
        fail_msg("%s: layout %d, %d -> %d, direction %d, width %d of %d at %d, windows %d, "
                 "fused %d: other bits",
                 posenc_isa_name(s->isa), s->layout, s->from, s->to, s->direction, s->width,
                 s->head_dim, s->offset, s->windows, s->fused);
}

static void compare(const struct sample *s)
{
    struct test_random random = {(uint32_t)(s->width * 31 + s->from)};
    struct side q = side_of(s, Q_HEADS, &random), k = side_of(s, K_HEADS, &random);
    posenc_plan *across = plan_of(s, POSENC_ADJACENT + POSENC_SPLIT_HALF - s->layout);
    posenc_plan *within = plan_of(s, s->width % 4 ? s->layout : 0);

    turn(s, across, &q, &k, 1);
    turn(s, within, &q, &k, 0);
    compare_side(s, &q);
    compare_side(s, &k);
    posenc_plan_free(across);
    posenc_plan_free(within);
    free_side(&q);
    free_side(&k);
}

/* Every ISA, layout, pair of dtypes and direction at every width up to one and a half chunks. */
static void test_all(void **state)
{
    (void)state;
    int32_t isas[TEST_ISAS];
    const size_t n = test_isas(isas);

    for (size_t k = 0; k < n; k++)
        for (int32_t width = 2; width <= 200; width += test_quick() ? 26 : width < 80 ? 2 : 12)
            for (int combination = 0; combination < 2 * 9 * 3; combination++) {
                struct sample s = {.isa = isas[k], .layout = 1 + combination % 2,
                                   .from = 1 + combination / 2 % 3, .to = 1 + combination / 6 % 3,
                                   .direction = combination / 18, .head_dim = width + 7,
                                   .width = width, .offset = width % 8,
                                   .windows = width / 2 % 2, .fused = width / 4 % 2};

                compare(&s);
                s.random_bits = 1;
                s.fused = !s.fused;
                compare(&s);
            }
}

/* Rows that the fused call and the turned directions make in several pieces. */
static void test_wide_rows(void **state)
{
    (void)state;
    int32_t isas[TEST_ISAS];
    const size_t n = test_isas(isas);

    for (size_t k = 0; k < n; k++)
        for (int c = 0; c < 12; c++) {
            struct sample s = {.isa = isas[k], .layout = 1 + c % 2, .from = POSENC_F32,
                               .to = POSENC_F16, .direction = c / 4, .head_dim = 1306,
                               .width = 1302, .offset = 3, .fused = c / 2 % 2};

            compare(&s);
        }
}

static void test_f64(void **state)
{
    (void)state;
    for (int c = 0; c < 24; c++) {
        struct sample s = {.layout = 1 + c % 2, .from = POSENC_F64, .to = POSENC_F64,
                           .direction = c / 8, .head_dim = 90, .width = 2 + 20 * (c / 2 % 4),
                           .offset = 5, .fused = c % 2};

        compare(&s);
    }
}

/* There and back: the plan with both layouts exchanged undoes a rotation. */
static void test_back(void **state)
{
    (void)state;
    enum { D = 48 };
    float x[4 * D], y[4 * D], z[4 * D];
    struct test_random random = {9};
    posenc_error error = {0, ""};
    posenc_positions positions;
    struct sample s = {.layout = POSENC_ADJACENT, .head_dim = D, .width = 32, .offset = 8};
    posenc_plan *there = plan_of(&s, POSENC_SPLIT_HALF);
    posenc_tensor in, middle, out;

    s.layout = POSENC_SPLIT_HALF;
    posenc_plan *back = plan_of(&s, POSENC_ADJACENT);
    for (int i = 0; i < 4 * D; i++) x[i] = test_unit(&random);
    posenc_tensor_contiguous(&in, x, POSENC_F32, 1, 2, 2, D);
    posenc_tensor_contiguous(&middle, y, POSENC_F32, 1, 2, 2, D);
    posenc_tensor_contiguous(&out, z, POSENC_F32, 1, 2, 2, D);
    posenc_positions_start(&positions, 77);
    test_ok(posenc_rope(there, POSENC_FORWARD, &positions, &in, &middle, NULL, NULL, &error),
            &error);
    test_ok(posenc_rope(back, POSENC_INVERSE, &positions, &middle, &out, NULL, NULL, &error),
            &error);
    for (int i = 0; i < 4 * D; i++) assert_true(z[i] - x[i] < 1e-6f && x[i] - z[i] < 1e-6f);
    posenc_plan_free(there);
    posenc_plan_free(back);
}

/* In place: by NULL, by the same view, flat, and as the plain calls that are told at a glance. */
static void test_in_place(void **state)
{
    (void)state;
    enum { D = 16 };
    static float x[3 * D], row[D];
    struct sample s = {.layout = POSENC_ADJACENT, .head_dim = D, .width = D};
    posenc_plan *plan = plan_of(&s, POSENC_SPLIT_HALF);
    posenc_positions positions;
    posenc_tensor q, k, same, rows;

    posenc_positions_start(&positions, 1);
    posenc_tensor_contiguous(&q, x, POSENC_F32, 1, 1, 1, D);
    posenc_tensor_contiguous(&k, x + D, POSENC_F32, 1, 1, 2, D);
    posenc_tensor_contiguous(&rows, row, POSENC_F32, 1, 1, 1, D);
    same = q;
    for (int direction = POSENC_FORWARD; direction <= POSENC_TRANSPOSE; direction++) {
        const char *words = "q_out is NULL|apart from q|out_layout (2)|layout (1)";

        REFUSE(posenc_rotate(plan, direction, &rows, &q, NULL, NULL, NULL, error),
               POSENC_ERROR_ARGUMENT, words, x);
        REFUSE(posenc_rotate(plan, direction, &rows, &q, NULL, &k, NULL, error),
               POSENC_ERROR_ARGUMENT, words, x);
        REFUSE(posenc_rotate(plan, direction, &rows, NULL, NULL, &k, NULL, error),
               POSENC_ERROR_ARGUMENT, "k_out is NULL", x);
        REFUSE(posenc_rotate(plan, direction, &rows, &q, &same, NULL, NULL, error),
               POSENC_ERROR_ARGUMENT, "q_out is the same view", x);
        REFUSE(posenc_rope(plan, direction, &positions, &q, &q, NULL, NULL, error),
               POSENC_ERROR_ARGUMENT, "q_out is the same view", x);
        REFUSE(posenc_rope(plan, direction, &positions, NULL, NULL, &k, NULL, error),
               POSENC_ERROR_ARGUMENT, "k_out is NULL", x);
    }
    REFUSE(posenc_rope_flat(plan, x, NULL, POSENC_F32, 1, 1, 1, 0, 1, error),
           POSENC_ERROR_ARGUMENT, "q_out is NULL", x);
    posenc_plan_free(plan);
}

static void test_parameters(void **state)
{
    (void)state;
    posenc_rope_params params = test_params(POSENC_ADJACENT, 8, 8);
    posenc_plan *plan = NULL;
    uint8_t prints[4][16];

    params.out_layout = 3;
    REFUSE(posenc_plan_create(&plan, &params, error), POSENC_ERROR_ARGUMENT,
           "out_layout is 3|POSENC_SPLIT_HALF", prints);
    params.out_layout = -1;
    REFUSE(posenc_plan_create(&plan, &params, error), POSENC_ERROR_ARGUMENT, "out_layout is -1",
           prints);
    params.out_layout = 0;
    params.reserved3 = 1;
    REFUSE(posenc_plan_create(&plan, &params, error), POSENC_ERROR_ARGUMENT, "reserved3 is 1",
           prints);
    params.reserved3 = 0;
    for (int i = 0; i < 4; i++) {
        params.layout = i == 3 ? POSENC_SPLIT_HALF : POSENC_ADJACENT;
        params.out_layout = i == 3 ? POSENC_ADJACENT : i;
        plan = test_plan(&params);
        assert_int_equal(posenc_plan_fingerprint(plan, prints[i], NULL), POSENC_OK);
        posenc_plan_free(plan);
    }
    assert_memory_equal(prints[0], prints[1], 16); /* 0 is the layout itself */
    assert_memory_not_equal(prints[0], prints[2], 16);
    assert_memory_not_equal(prints[0], prints[3], 16);
    assert_memory_not_equal(prints[2], prints[3], 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),      cmocka_unit_test(test_wide_rows),
        cmocka_unit_test(test_f64),      cmocka_unit_test(test_back),
        cmocka_unit_test(test_in_place), cmocka_unit_test(test_parameters),
    };
    return cmocka_run_group_tests_name("rotate_layouts", tests, NULL, NULL);
}
