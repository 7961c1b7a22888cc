/* SPDX-License-Identifier: MIT */
/* Appends to I8: what float32 would have been stored, quantised, with scales and no byte beyond. */
#include "append_support.h"
#include "support/guard.h"
#include "support/half.h"

#include "../src/kernels.h"

enum { HEADS = 5, CHANNELS = 96, WIDTH = 64, OFFSET = 32 };
enum { BLOCKS = APPEND_PAGES, ALL = BLOCKS * APPEND_SLOTS * HEADS * CHANNELS };

static float reference[ALL * 2];
static uint32_t src_memory[2 * APPEND_ALL * (HEADS + 3) * (CHANNELS + 3)];
static float row_memory[APPEND_ALL * WIDTH];

/* The same call into a cache of float32. */
static void append_floats(const struct append_case *quantised)
{
    struct append_case c = *quantised;
    posenc_error error = {0, ""};

    c.cache.rows.dtype = POSENC_F32;
    c.cache.rows.data = reference + c.rows.origin;
    c.cache.scales.data = NULL;
    c.cache.header = NULL;
    c.params.stream = 0;
    memset(reference, 0xa5, sizeof reference);
    test_ok(posenc_cache_append(&c.params, &c.src.tensor, &c.cache, &error), &error);
}

/* Every head that a token went to, with its scales; all else as it was. */
static void check_heads(const struct append_case *c, int8_t *rows, unsigned char *scales,
                        const int8_t *rows_memory, size_t rows_bytes,
                        const unsigned char *scales_memory, size_t scales_bytes)
{
    const struct posenc_kernels *plain = posenc_kernels_get(POSENC_ISA_SCALAR);
    const posenc_tensor *t = &c->cache.scales;
    int64_t groups = t->shape[3], size = (int64_t)test_size(t->dtype);
    int64_t first = c->cache.header ? c->header.first_key : 0;

    for (int64_t b = 0; b < c->src.tensor.shape[0]; b++)
        for (int64_t i = 0; i < APPEND_TOKENS * HEADS; i++) {
            int64_t sequence, key = append_key(c, b, i / HEADS, &sequence);

            if (key < 0) continue;
            int64_t at = append_at(c, sequence, key, i % HEADS), block, slot;
            assert_true(first <= key);
            test_ok(posenc_cache_locate(&c->cache, sequence, key, &block, &slot, NULL), NULL);
            int64_t to = block * t->stride[0] + slot * t->stride[1] + i % HEADS * t->stride[2];
            plain->quantise(reference + at, (size_t)groups, (size_t)(CHANNELS / groups), rows + at,
                            scales + to * size, t->dtype);
        }
    assert_memory_equal(rows, rows_memory, rows_bytes);
    assert_memory_equal(scales, scales_memory, scales_bytes);
}

static void check_call(struct append_case *c, int32_t scale_dtype, int64_t groups)
{
    static int8_t rows[ALL * 2];
    static uint64_t scales[ALL / 8];
    size_t rows_bytes = (size_t)c->rows.elements;
    const int64_t *shape = c->rows.tensor.shape;
    size_t size = test_size(scale_dtype);
    size_t scales_bytes = (size_t)(shape[0] * shape[1] * shape[2] * groups) * size;
    struct test_guard row_guard = test_guard_new(rows_bytes);
    struct test_guard scale_guard = test_guard_new(scales_bytes);
    posenc_error error = {0, ""};

    c->cache.rows = c->rows.tensor;
    c->cache.rows.dtype = POSENC_I8;
    for (int place = TEST_AT_END; place <= TEST_AT_START; place++) {
        int8_t *memory = test_guard_at(&row_guard, rows_bytes, 1, (enum test_place)place);
        void *of_scales = test_guard_at(&scale_guard, scales_bytes, size, (enum test_place)place);

        c->cache.rows.data = memory + c->rows.origin;
        posenc_tensor_contiguous(&c->cache.scales, of_scales, scale_dtype, shape[0], shape[1],
                                 shape[2], groups);
        memset(memory, 0xa5, rows_bytes);
        memset(of_scales, 0xa5, scales_bytes);
        memset(rows, 0xa5, sizeof rows);
        memset(scales, 0xa5, sizeof scales);
        test_ok(posenc_cache_append(&c->params, &c->src.tensor, &c->cache, &error), &error);
        append_floats(c);
        check_heads(c, rows, (unsigned char *)scales, memory, rows_bytes, of_scales, scales_bytes);
    }
    test_guard_free(&row_guard);
    test_guard_free(&scale_guard);
}

static posenc_plan *plan_with_rows(const posenc_tensor *src, int32_t isa, posenc_tensor *rows)
{
    posenc_rope_params params = test_params(POSENC_ADJACENT, CHANNELS, WIDTH);
    posenc_positions positions;

    params.rotary_offset = OFFSET;
    params.out_layout = POSENC_SPLIT_HALF;
    params.isa = isa;
    posenc_plan *plan = test_plan(&params);
    posenc_positions_start(&positions, 9);
    posenc_tensor_contiguous(rows, row_memory, POSENC_F32, 1, src->shape[1], 1, WIDTH);
    test_ok(posenc_rows(plan, &positions, rows, NULL), NULL);
    return plan;
}

static void rows_and_scales_are_those_of_the_floats(void **state)
{
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);
    struct test_random random = {5};

    (void)state;
    for (size_t i = 0; i < n; i++)
        for (int at = 0; at < 4 * APPEND_GEOMETRIES; at++) {
            struct append_case c;
            posenc_tensor rows;
            posenc_plan *plan = NULL;

            append_case_new(&c, (enum append_geometry)(at / 4), POSENC_F32 + at % 3, POSENC_F32,
                            (enum test_order)(at % TEST_ORDERS),
                            (enum test_order)(at / 2 % TEST_ORDERS), HEADS, CHANNELS);
            if (c.geometry == APPEND_ONE_START) c.params.start = 3;
            c.cache.header = NULL;
            test_view_fill(&c.src, src_memory, TEST_NAN, 0, CHANNELS, &random);
            test_view_at(&c.src, src_memory);
            /* a head of zeros, and one with a NaN */
            for (int64_t d = 0; d < CHANNELS; d++)
                test_store(src_memory, c.src.tensor.dtype, test_view_index(&c.src, 0, 1, 1, d), 0);
            memset((char *)src_memory + test_view_index(&c.src, 0, 2, 0, 7) *
                                            (int64_t)test_size(c.src.tensor.dtype),
                   0xff, test_size(c.src.tensor.dtype));
            if (at % 4) plan = plan_with_rows(&c.src.tensor, isas[i], &rows);
            c.params.isa = isas[i];
            c.params.norm = at % 4 == 2 ? POSENC_NORM_HEAD : POSENC_NORM_NONE;
            c.params.scale = at % 4 == 3 ? 0.3 : 0;
            c.params.stream = at % 2;
            c.params.rope = plan;
            c.params.rows = plan ? &rows : NULL;
            check_call(&c, at & 4 ? POSENC_F16 : POSENC_F32, at & 1 ? 1 : CHANNELS / 32);
            posenc_plan_free(plan);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_scales_are_those_of_the_floats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
