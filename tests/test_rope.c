/* SPDX-License-Identifier: MIT */
/* The fused and the flat call against rows and rotation in steps, across inner blocks. */
#include "support/half.h"
#include "support/random.h"
#include "support/test.h"
#include "support/view.h"

struct shape { int64_t batch, tokens, q_heads, k_heads; int32_t width; };

/* More tokens than any inner block, one token, many heads, rotary widths up to the limit. */
static const struct shape shapes[] = {
    {1, 1, 1, 0, 128},   {1, 700, 2, 1, 64},  {3, 333, 1, 1, 2},   {2, 17, 8, 2, 130},
    {1, 130, 1, 1, 4096}, {1, 3, 2, 1, 65536}, {64, 1, 2, 1, 128}, {5, 64, 1, 0, 34},
    {1, 65, 0, 3, 258},  {1, 4097, 1, 1, 32},
};

static const int32_t dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16};

struct buffers { char *q, *k; size_t q_size, k_size, q_count, k_count; };

static struct buffers buffers_new(const struct shape *shape, int32_t dtype)
{
    struct buffers b = {NULL, NULL, 0, 0, 0, 0};
    struct test_random random = {1};
    size_t tokens = (size_t)(shape->batch * shape->tokens) * (size_t)shape->width;

    b.q_count = tokens * (size_t)shape->q_heads;
    b.k_count = tokens * (size_t)shape->k_heads;
    b.q_size = b.q_count * test_size(dtype);
    b.k_size = b.k_count * test_size(dtype);
    b.q = malloc(b.q_size + 1);
    b.k = malloc(b.k_size + 1);
    test_fill(b.q, dtype, 0, (int64_t)b.q_count, TEST_SMALL, &random);
    test_fill(b.k, dtype, 0, (int64_t)b.k_count, TEST_SMALL, &random);
    return b;
}

static void buffers_free(struct buffers *b)
{
    free(b->q);
    free(b->k);
}

static void tensors(const struct shape *shape, int32_t dtype, const struct buffers *b,
                    posenc_tensor *q, posenc_tensor *k)
{
    posenc_tensor_contiguous(q, b->q, dtype, shape->batch, shape->tokens, shape->q_heads,
                             shape->width);
    posenc_tensor_contiguous(k, b->k, dtype, shape->batch, shape->tokens, shape->k_heads,
                             shape->width);
}

/* Rows into memory, then rotation: the plain way. */
static void in_steps(const posenc_plan *plan, const struct shape *shape, int32_t dtype,
                     int32_t direction, const posenc_positions *positions, const struct buffers *b)
{
    posenc_error error = {0, ""};
    posenc_tensor q, k, rows;
    size_t count = (size_t)(shape->batch * shape->tokens) * (size_t)shape->width;
    float *memory = malloc(count * sizeof(float));

    tensors(shape, dtype, b, &q, &k);
    posenc_tensor_contiguous(&rows, memory, POSENC_F32, shape->batch, shape->tokens, 1,
                             shape->width);
    test_ok(posenc_rows(plan, positions, &rows, &error), &error);
    test_ok(posenc_rotate(plan, direction, &rows, shape->q_heads ? &q : NULL, NULL,
                          shape->k_heads ? &k : NULL, NULL, &error), &error);
    free(memory);
}

static posenc_plan *plan_of(int32_t layout, int32_t width, int32_t isa, double factor)
{
    posenc_rope_params params = test_params(layout, width, width);

    params.isa = isa;
    params.attention_factor = factor;
    return test_plan(&params);
}

/* Returns the hash of the result, which is the same for every ISA. */
static uint64_t check_shape(const struct shape *shape, int32_t layout, int32_t dtype,
                            int32_t direction, int32_t isa)
{
    posenc_plan *plan = plan_of(layout, shape->width, isa, 1.3);
    struct buffers steps = buffers_new(shape, dtype), fused = buffers_new(shape, dtype);
    posenc_tensor q, k;
    posenc_positions positions;
    posenc_error error = {0, ""};
    uint64_t hash;

    posenc_positions_start(&positions, shape->tokens > 100 ? -50 : 123456789);
    in_steps(plan, shape, dtype, direction, &positions, &steps);
    tensors(shape, dtype, &fused, &q, &k);
    test_ok(posenc_rope(plan, direction, &positions, shape->q_heads ? &q : NULL, NULL,
                        shape->k_heads ? &k : NULL, NULL, &error), &error);
    if (memcmp(steps.q, fused.q, steps.q_size) != 0
        || memcmp(steps.k, fused.k, steps.k_size) != 0) {
        fail_msg("%s: layout %d, dtype %d, direction %d, %lld tokens, width %d",
                 posenc_isa_name(isa), layout, dtype, direction, (long long)shape->tokens,
                 shape->width);
    }
    if (direction == POSENC_FORWARD) {
        buffers_free(&fused);
        fused = buffers_new(shape, dtype);
        test_ok(posenc_rope_flat(plan, shape->q_heads ? fused.q : NULL,
                                 shape->k_heads ? fused.k : NULL, dtype, (size_t)shape->batch,
                                 (size_t)shape->tokens, (size_t)shape->q_heads,
                                 (size_t)shape->k_heads, positions.start, &error), &error);
        assert_memory_equal(steps.q, fused.q, steps.q_size);
        assert_memory_equal(steps.k, fused.k, steps.k_size);
    }
    hash = test_hash(TEST_HASH_START, steps.q, steps.q_count, test_size(dtype));
    hash = test_hash(hash, steps.k, steps.k_count, test_size(dtype));
    buffers_free(&steps);
    buffers_free(&fused);
    posenc_plan_free(plan);
    return hash;
}

static void test_fused_and_flat(void **state)
{
    static uint64_t scalar[sizeof shapes / sizeof *shapes][6];
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            int large = shapes[s].tokens * shapes[s].width > 40000;

            for (int c = 0; c < 6; c += large && test_quick() ? 5 : 1) {
                uint64_t hash = check_shape(&shapes[s], 1 + c % 2, dtypes[c / 2],
                                            (int32_t)(c + (int)s) % 3, isas[i]);

                if (i == 0) scalar[s][c] = hash;
                if (hash != scalar[s][c]) {
                    fail_msg("%s differs from scalar: shape %zu, combination %d",
                             posenc_isa_name(isas[i]), s, c);
                }
            }
        }
    }
}

/* Ids that repeat, jump, change sign and leave blocks of 16: fused, in steps, one by one. */
static void test_wild_ids(void **state)
{
    enum { TOKENS = 300, WIDTH = 80 };
    static int64_t ids[2 * TOKENS];
    const struct shape shape = {2, TOKENS, 2, 1, WIDTH};
    struct test_random random = {41};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (int i = 0; i < 2 * TOKENS; i++) {
        switch (test_below(&random, 5)) {
        case 0: ids[i] = (int32_t)test_bits(&random); break;
        case 1: ids[i] = i ? ids[i - 1] : 3; break;
        case 2: ids[i] = i ? -ids[i - 1] - 1 : 5; break;
        default: ids[i] = i && ids[i - 1] < INT32_MAX ? ids[i - 1] + 1 : 15; break;
        }
    }
    for (size_t i = 0; i < n; i++) {
        posenc_plan *plan = plan_of(POSENC_SPLIT_HALF, WIDTH, isas[i], 0);
        struct buffers steps = buffers_new(&shape, POSENC_F32),
                       fused = buffers_new(&shape, POSENC_F32);
        struct buffers single = buffers_new(&shape, POSENC_F32);
        posenc_positions positions;
        posenc_tensor q, k;
        posenc_error error = {0, ""};

        posenc_positions_start(&positions, 0);
        positions.kind = POSENC_POSITIONS_IDS;
        positions.dtype = POSENC_I64;
        positions.ids = ids;
        positions.stride[0] = TOKENS;
        positions.stride[1] = 1;
        in_steps(plan, &shape, POSENC_F32, POSENC_FORWARD, &positions, &steps);
        tensors(&shape, POSENC_F32, &fused, &q, &k);
        test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &q, NULL, &k, NULL, &error), &error);
        assert_memory_equal(steps.q, fused.q, steps.q_size);
        assert_memory_equal(steps.k, fused.k, steps.k_size);
        for (size_t t = 0; t < 2 * TOKENS; t++) {
            test_ok(posenc_rope_flat(plan, single.q + t * 2 * WIDTH * 4, single.k + t * WIDTH * 4,
                                     POSENC_F32, 1, 1, 2, 1, ids[t], &error), &error);
        }
        assert_memory_equal(steps.q, single.q, steps.q_size);
        assert_memory_equal(steps.k, single.k, steps.k_size);
        buffers_free(&steps);
        buffers_free(&fused);
        buffers_free(&single);
        posenc_plan_free(plan);
    }
}

/* Fused equals steps for the other two sources of rows: transformers' recipe and tables. */
static void test_other_rows(void **state)
{
    enum { TOKENS = 90, WIDTH = 600, START = 3 };
    static float table[(START + TOKENS) * WIDTH];
    const struct shape shape = {1, TOKENS, 2, 1, WIDTH};
    struct test_random random = {43};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    test_fill(table, POSENC_F32, 0, (START + TOKENS) * WIDTH, TEST_SMALL, &random);
    for (size_t i = 0; i < n * 6; i++) {
        posenc_rope_params params = test_params(1 + (int32_t)(i % 2), WIDTH, WIDTH);
        struct buffers steps = buffers_new(&shape, POSENC_F16);
        struct buffers fused = buffers_new(&shape, POSENC_F16);
        int32_t direction = (int32_t)(i / 2 % 3);
        posenc_positions positions;
        posenc_tensor q, k;
        posenc_plan *plan;

        params.isa = isas[i / 6];
        params.attention_factor = 1.5;
        if (i % 2) {
            params.recipe = POSENC_RECIPE_HF_F32;
            params.row_dtype = POSENC_BF16;
        } else {
            params.cos_table = table;
            params.sin_table = table + (START + TOKENS) * WIDTH / 2;
            params.cos_rows = params.sin_rows = START + TOKENS;
        }
        plan = test_plan(&params);
        posenc_positions_start(&positions, START);
        in_steps(plan, &shape, POSENC_F16, direction, &positions, &steps);
        tensors(&shape, POSENC_F16, &fused, &q, &k);
        test_ok(posenc_rope(plan, direction, &positions, &q, NULL, &k, NULL, NULL), NULL);
        assert_memory_equal(steps.q, fused.q, steps.q_size);
        assert_memory_equal(steps.k, fused.k, steps.k_size);
        buffers_free(&steps);
        buffers_free(&fused);
        posenc_plan_free(plan);
    }
}

/* INVERSE and TRANSPOSE are FORWARD by rows changed as the header says, bit for bit. */
static void test_directions_by_definition(void **state)
{
    enum { TOKENS = 40, WIDTH = 70, COUNT = TOKENS * WIDTH };
    const struct shape shape = {1, TOKENS, 1, 0, WIDTH};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (size_t i = 0; i < n * 2; i++) {
        const double factor = 1.2079441541679836;
        double scale = i % 2 ? 1 : 1 / (factor * factor);
        struct buffers a = buffers_new(&shape, POSENC_F32), b = buffers_new(&shape, POSENC_F32);
        posenc_plan *plan = plan_of(POSENC_ADJACENT, WIDTH, isas[i / 2], factor);
        static float memory[COUNT];
        posenc_positions positions;
        posenc_tensor rows, q, k;

        posenc_positions_start(&positions, 1000);
        posenc_tensor_contiguous(&rows, memory, POSENC_F32, 1, TOKENS, 1, WIDTH);
        test_ok(posenc_rows(plan, &positions, &rows, NULL), NULL);
        tensors(&shape, POSENC_F32, &a, &q, &k);
        test_ok(posenc_rotate(plan, i % 2 ? POSENC_TRANSPOSE : POSENC_INVERSE, &rows, &q, NULL,
                              NULL, NULL, NULL), NULL);
        for (int j = 0; j < COUNT; j++) {
            double sign = j % WIDTH < WIDTH / 2 ? scale : -scale;

            memory[j] = (float)((double)memory[j] * sign);
        }
        tensors(&shape, POSENC_F32, &b, &q, &k);
        test_ok(posenc_rotate(plan, POSENC_FORWARD, &rows, &q, NULL, NULL, NULL, NULL), NULL);
        assert_memory_equal(a.q, b.q, a.q_size);
        buffers_free(&a);
        buffers_free(&b);
        posenc_plan_free(plan);
    }
}

/* A row has the same bits alone, in a block of 8 and in a block of 4096 (case B09-b). */
static void test_row_in_blocks(void **state)
{
    enum { WIDTH = 64 };
    static float many[4096 * WIDTH];
    static const int64_t counts[] = {8, 4096};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        posenc_plan *plan = plan_of(POSENC_ADJACENT, WIDTH, isas[i], 0);
        posenc_tensor rows;
        posenc_positions positions;
        float alone[WIDTH];

        posenc_positions_start(&positions, 7);
        posenc_tensor_contiguous(&rows, alone, POSENC_F32, 1, 1, 1, WIDTH);
        test_ok(posenc_rows(plan, &positions, &rows, NULL), NULL);
        for (int c = 0; c < 2; c++) {
            positions.start = 0;
            posenc_tensor_contiguous(&rows, many, POSENC_F32, 1, counts[c], 1, WIDTH);
            test_ok(posenc_rows(plan, &positions, &rows, NULL), NULL);
            assert_memory_equal(alone, many + 7 * WIDTH, sizeof alone);
        }
        posenc_plan_free(plan);
    }
}

/* Nothing to do is no error: no batch, no tokens, no heads, neither tensor. */
static void test_empty(void **state)
{
    posenc_plan *plan = plan_of(POSENC_ADJACENT, 8, POSENC_ISA_DEFAULT, 0);
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, kept[8];
    posenc_positions positions;
    posenc_error error = {0, ""};

    (void)state;
    memcpy(kept, x, sizeof x);
    posenc_positions_start(&positions, 1);
    for (int empty = 0; empty < 3; empty++) {
        posenc_tensor q;

        posenc_tensor_contiguous(&q, x, POSENC_F32, empty != 0, empty != 1, empty != 2, 8);
        test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &q, NULL, NULL, NULL, &error),
                &error);
    }
    test_ok(posenc_rope_flat(plan, x, NULL, POSENC_F32, 0, 1, 1, 0, 1, &error), &error);
    test_ok(posenc_rope_flat(plan, x, NULL, POSENC_F32, 1, 0, 1, 0, 1, &error), &error);
    assert_memory_equal(x, kept, sizeof x);
    posenc_plan_free(plan);
}

/*
 * A view without elements may claim any size: nothing may count up to it, compute with its strides
 * or look at positions for it; the time limit of the test ends a loop that does.
 */
static void test_empty_and_vast(void **state)
{
    const int64_t vast = INT64_MAX, empty[][3] = {
        {vast, 0, 1}, {vast, vast, 0}, {vast, 1, 0}, {0, vast, vast}, {3, 0, vast},
    };
    posenc_rope_params params = test_params(POSENC_ADJACENT, 8, 4);
    posenc_plan *plan = NULL;
    posenc_error error = {0, ""};
    const int32_t id = 5;
    posenc_positions positions;

    (void)state;
    test_ok(posenc_plan_create(&plan, &params, &error), &error);
    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I32;
    positions.ids = &id;
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        const int64_t *n = empty[i];
        posenc_tensor q = {NULL, POSENC_F32, {n[0], n[1], n[2], 8}, {vast, vast, vast, 1}};
        posenc_tensor out = q, rows = q;
        float x = 0;

        out.data = &x;
        test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &q, NULL, NULL, NULL, &error),
                &error);
        test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &q, &out, &q, NULL, &error),
                &error);
        rows.shape[2] = 1;
        rows.shape[3] = 4;
        if (n[2] == 1) test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
    }
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fused_and_flat),
        cmocka_unit_test(test_wild_ids),
        cmocka_unit_test(test_other_rows),
        cmocka_unit_test(test_directions_by_definition),
        cmocka_unit_test(test_row_in_blocks),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_empty_and_vast),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
