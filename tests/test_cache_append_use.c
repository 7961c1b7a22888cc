/* SPDX-License-Identifier: MIT */
/* Appends in use: stack, pages that end, in place, wide heads, keys backwards, large calls. */
#include "append_model.h"
#include "support/guard.h"
#include "support/half.h"
#include "support/random.h"
#include "support/stack.h"
#include "support/test.h"

#include "../src/kernels.h"

enum { ROOM = 1 << 20, KINDS = 9 };

static float src_memory[ROOM], row_memory[ROOM / 8], weight_memory[1 << 15];
static uint32_t out_memory[ROOM], other_memory[ROOM];

/* A call and all that it points to. */
struct work {
    posenc_append_params params;
    posenc_plan *plan;
    posenc_tensor src, rows, weight, out;
    posenc_cache cache;
};

struct sizes {
    int64_t tokens, heads, channels;
    int32_t from, to, across; /* 1: stored in the other layout */
};

/* What a call of kind 0..KINDS - 1 does: with odd widths no vector fits a window. */
static void set_kind(struct work *w, const struct sizes *z, int kind)
{
    posenc_append_params *p = &w->params;
    const int whole = kind % 2 || kind == 8;
    const int32_t channels = (int32_t)z->channels, pairs = channels / (whole ? 2 : 3);
    posenc_rope_params rope = test_params(kind % 4 < 2 ? POSENC_SPLIT_HALF : POSENC_ADJACENT,
                                          channels, 2 * (pairs ? pairs : 1));

    posenc_append_params_init(p);
    rope.rotary_offset = channels - rope.rotary_dim;
    rope.out_layout = z->across ? 3 - rope.layout : 0;
    w->plan = kind && channels % 2 == 0 ? test_plan(&rope) : NULL;
    p->norm = kind < 3 ? POSENC_NORM_NONE
                       : whole ? POSENC_NORM_HEAD
                               : POSENC_NORM_PROJECTION;
    p->norm_after = kind == 5 || kind == 6;
    p->eps = 1e-6;
    p->scale = kind == 2 || kind == 6 ? 0.3 : 0;
    p->stream = kind == 7;
    if (kind < 4) return;
    posenc_tensor_contiguous(&w->weight, weight_memory, POSENC_F32 + kind % 3, 1, 1,
                             kind % 2 ? z->heads : 1, z->channels);
    p->weight = &w->weight;
    p->weight_plus_one = kind == 7;
}

static void work_new(struct work *w, const struct sizes *z, int kind, int32_t isa)
{
    struct test_random random = {(uint32_t)kind + 1};
    posenc_positions positions;
    int64_t count = z->tokens * z->heads * z->channels;

    assert_true(count <= ROOM && z->tokens * z->channels <= ROOM / 8);
    set_kind(w, z, kind);
    w->params.isa = isa;
    for (int64_t i = 0; i < count; i++)
        test_store(src_memory, z->from, i, (double)test_unit(&random));
    for (int64_t i = 0; w->params.weight && i < w->weight.shape[2] * z->channels; i++)
        test_store(weight_memory, w->weight.dtype, i, (double)test_unit(&random));
    posenc_tensor_contiguous(&w->src, src_memory, z->from, 1, z->tokens, z->heads, z->channels);
    posenc_tensor_contiguous(&w->out, out_memory, z->to, 1, z->tokens, z->heads, z->channels);
    posenc_cache_plain(&w->cache, &w->out);
    if (!w->plan) return;
    posenc_positions_start(&positions, 500);
    posenc_tensor_contiguous(&w->rows, row_memory, POSENC_F32, 1, z->tokens, 1,
                             2 * (int64_t)posenc_plan_pairs(w->plan));
    test_ok(posenc_rows(w->plan, &positions, &w->rows, NULL), NULL);
    w->params.rope = w->plan;
    w->params.rows = &w->rows;
}

static size_t bytes_of(const posenc_tensor *t)
{
    return (size_t)(t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3]) * test_size(t->dtype);
}

static void append(const struct work *w)
{
    posenc_error error = {0, ""};

    test_ok(posenc_cache_append(&w->params, &w->src, &w->cache, &error), &error);
}

/* The tokens [first, first + count) of a call, into the slots where they are at work->cache. */
static void append_part(const struct work *whole, int64_t first, int64_t count)
{
    struct work w = *whole;

    w.src.data = (char *)w.src.data + first * w.src.stride[1] * (int64_t)test_size(w.src.dtype);
    w.src.shape[1] = w.rows.shape[1] = count;
    w.rows.data = (float *)w.rows.data + (w.plan ? first * w.rows.stride[1] : 0);
    w.params.start += first;
    w.params.rows = w.plan ? &w.rows : NULL;
    append(&w);
}

static void *append_in_thread(void *argument)
{
    const struct work *w = argument;
    posenc_cache_append(&w->params, &w->src, &w->cache, NULL);
    return NULL;
}

static void a_call_needs_less_than_64_KiB_of_stack(void **state)
{
    static const int64_t widths[] = {64, 1090, 4096};
    const size_t nothing = test_stack_of_nothing(), most = test_stack_most();
    size_t largest = 0;

    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++)
        for (int i = 0; posenc_isa_available(isa) && i < 3 * KINDS * 2; i++) {
            const struct sizes z = {2, 7, widths[i / KINDS % 3], POSENC_BF16, POSENC_F32, i % 2};
            struct work w;

            work_new(&w, &z, i % KINDS, isa);
            if (i / KINDS >= 3) {
                w.cache.rows.dtype = POSENC_I8;
                posenc_tensor_contiguous(&w.cache.scales, other_memory, POSENC_F16, 1, 2, 7, 1);
            }
            append(&w);
            const size_t bytes = test_stack_of(append_in_thread, &w);
            if (bytes >= nothing + most)
                fail_msg("%zu bytes of stack, kind %d of %d channels", bytes, i % KINDS,
                         (int)z.channels);
            largest = bytes > largest ? bytes : largest;
            posenc_plan_free(w.plan);
        }
    print_message("%zu bytes of stack, without a call %zu\n", largest, nothing);
    if (!test_quick()) assert_true(largest > nothing + (1 << 14)); /* or nothing was seen */
}

enum { GUARDS = 4 };

static void *put(const struct test_guard *guard, const posenc_tensor *t, enum test_place place)
{
    void *at = test_guard_at(guard, bytes_of(t), test_size(t->dtype), place);

    memcpy(at, t->data, bytes_of(t));
    return at;
}

/* Three tokens into pages 1 and 0 of two slots, so that both edges of the memory are written. */
static void check_pages(const struct test_guard *guards, const struct sizes *z, int kind,
                        int32_t isa, enum test_place place)
{
    static const int32_t pages[] = {1, 0};
    struct work w;

    work_new(&w, z, kind, isa);
    posenc_tensor_contiguous(&w.cache.rows, out_memory, z->to, 2, 2, z->heads, z->channels);
    w.cache.kind = POSENC_CACHE_PAGED;
    w.cache.pages = pages;
    w.cache.sequences = 1;
    w.cache.page_stride = w.cache.sequence_pages = 2;
    w.params.start = 1;
    memset(out_memory, 0xa5, bytes_of(&w.cache.rows));
    w.cache.rows.data = put(&guards[0], &w.cache.rows, place);
    w.src.data = put(&guards[1], &w.src, place);
    if (w.plan) w.rows.data = put(&guards[2], &w.rows, place);
    if (w.params.weight) w.weight.data = put(&guards[3], &w.weight, place);
    append(&w);
    void *written = w.cache.rows.data;
    w.cache.rows.data = out_memory;
    w.src.data = src_memory;
    w.rows.data = row_memory;
    w.weight.data = weight_memory;
    append(&w);
    assert_memory_equal(written, out_memory, bytes_of(&w.cache.rows));
    posenc_plan_free(w.plan);
}

static void nothing_beyond_is_read_or_written(void **state)
{
    static const int64_t widths[] = {7, 18, 64, 128, 2, 34, 130, 514};
    const int some = test_quick() ? 4 : 8;
    struct test_guard guards[GUARDS];

    (void)state;
    for (int i = 0; i < GUARDS; i++) guards[i] = test_guard_new(1 << 17);
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++)
        for (int i = 0; posenc_isa_available(isa) && i < some * 9 * KINDS; i++) {
            const int32_t pair = i % 9, place = i / 9 % TEST_PLACES;
            const struct sizes z = {3, 5, widths[i / 9 / KINDS], pair / 3 + POSENC_F32,
                                    pair % 3 + POSENC_F32, i % 2};
            for (int at = 0; at < TEST_PLACES; at++)
                check_pages(guards, &z, i / 9 % KINDS, isa,
                            (enum test_place)((place + at) % TEST_PLACES));
        }
    for (int i = 0; i < GUARDS; i++) test_guard_free(&guards[i]);
}

/* More heads than go together, whole or token by token, where they lie or elsewhere. */
static void in_place_is_as_elsewhere(void **state)
{
    static const int64_t widths[] = {50, 64, 128};

    (void)state;
    for (int i = 0; i < 9 * KINDS; i++) {
        const int32_t dtype = POSENC_F32 + i % 3;
        const struct sizes z = {5, 19, widths[i / 3 % 3], dtype, dtype, 0};
        struct work w;

        work_new(&w, &z, i / 9, POSENC_ISA_DEFAULT);
        append(&w);
        const size_t bytes = bytes_of(&w.src);
        memcpy(other_memory, src_memory, bytes);
        if (i / 9) assert_memory_not_equal(out_memory, src_memory, bytes);
        posenc_cache_plain(&w.cache, &w.src);
        append(&w);
        assert_memory_equal(src_memory, out_memory, bytes);
        memcpy(src_memory, other_memory, bytes);
        for (int64_t t = 0; t < z.tokens; t++) {
            struct work one = w;

            one.src.data = (char *)src_memory + t * w.src.stride[1] * (int64_t)test_size(dtype);
            one.src.shape[1] = one.rows.shape[1] = 1;
            if (w.plan) {
                one.rows.data = row_memory + t * w.rows.stride[1];
                one.params.rows = &one.rows;
            }
            posenc_cache_plain(&one.cache, &one.src);
            append(&one);
        }
        assert_memory_equal(src_memory, out_memory, bytes);
        posenc_plan_free(w.plan);
    }
}

/* The bits of the definition, for the heads of one token; many of them are streamed. */
static void check_heads(int64_t heads, int64_t channels, int kind, int32_t isa, int32_t across)
{
    static float y[ROOM / 16], wide[ROOM / 16];
    const struct sizes z = {1, heads, channels, POSENC_F32, POSENC_F32, across};
    struct work w;

    work_new(&w, &z, kind, isa);
    if (heads > 2) w.params.stream = 1;
    struct model_token model = {
        .heads = z.heads,
        .channels = channels,
        .layout = kind % 4 < 2 ? POSENC_SPLIT_HALF : POSENC_ADJACENT,
        .pairs = w.plan ? posenc_plan_pairs(w.plan) : 0,
        .norm = w.params.norm,
        .norm_after = w.params.norm_after,
        .eps = w.params.eps,
        .scale = w.params.scale,
        .x = src_memory,
        .row = row_memory,
        .weight = w.params.weight ? wide : NULL,
    };
    model.out_layout = across ? 3 - model.layout : model.layout;
    model.window = (int32_t)channels - 2 * model.pairs;
    for (int64_t i = 0; model.weight && i < heads * channels; i++) {
        int64_t at = w.weight.shape[2] > 1 ? i : i % channels;
        float value = (float)test_load(weight_memory, w.weight.dtype, at);
        wide[i] = w.params.weight_plus_one ? 1.0f + value : value;
    }
    append(&w);
    model_bits(&model, y);
    if (memcmp(y, out_memory, bytes_of(&w.out)))
        fail_msg("isa %d, kind %d, %d heads of %d, across %d: other bits", isa, kind, (int)heads,
                 (int)channels, across);
    posenc_plan_free(w.plan);
}

static void heads_may_be_wide(void **state)
{
    static const int64_t widths[] = {514, 1030, 1536, 2050, 4096, 4098, 6144, 8192, 10001};

    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++)
        for (int i = 0; posenc_isa_available(isa) && i < 9 * KINDS; i++) {
            const int64_t most = i % KINDS == 5 || i % KINDS == 6 ? 4096 : INT64_MAX;
            const int64_t channels = widths[i / KINDS];

            for (int32_t across = 0; across < 2 && channels <= most; across++)
                check_heads(2, channels, i % KINDS, isa, across);
        }
}

/* More heads than the memory on the stack has room for. */
static void heads_may_be_many(void **state)
{
    static const int64_t widths[] = {254, 258, 300, 512, 1000};

    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++)
        for (int i = 0; posenc_isa_available(isa) && i < 5 * KINDS; i++)
            check_heads(20, widths[i / KINDS], i % KINDS, isa, i % 3 == 0);
}

/* Whatever the work, I8 holds what float32 would have held, quantised. */
static void int8_is_what_floats_become(void **state)
{
    static int8_t got[ROOM / 8], expected[ROOM / 8];
    static const int64_t widths[] = {64, 96, 128};
    const struct posenc_kernels *plain = posenc_kernels_get(POSENC_ISA_SCALAR);

    (void)state;
    for (int i = 0; i < 9 * KINDS; i++) {
        const struct sizes z = {3, 19, widths[i / 3 % 3], POSENC_F32 + i % 3, POSENC_F32, 0};
        const size_t heads = (size_t)(z.tokens * z.heads), channels = (size_t)z.channels;
        const size_t groups = i % 2 ? 1 : channels / 32;
        float scales[2][3 * 19 * 4];
        struct work w;

        work_new(&w, &z, i / 9, POSENC_ISA_DEFAULT);
        append(&w);
        for (size_t h = 0; h < heads; h++)
            plain->quantise((float *)out_memory + h * channels, groups, channels / groups,
                            expected + h * channels, &scales[0][h * groups], POSENC_F32);
        w.cache.rows.dtype = POSENC_I8;
        w.cache.rows.data = got;
        posenc_tensor_contiguous(&w.cache.scales, scales[1], POSENC_F32, 1, z.tokens, z.heads,
                                 (int64_t)groups);
        memset(got, 0x55, sizeof got);
        append(&w);
        assert_memory_equal(got, expected, heads * channels);
        assert_memory_equal(scales[1], scales[0], heads * groups * sizeof(float));
        posenc_plan_free(w.plan);
    }
}

/* The same keys, read forwards and backwards, and one row of them for two sequences. */
static void keys_may_have_any_strides(void **state)
{
    static const int64_t forwards[2][6] = {{0, 1, 2, 7, 4, -1}, {3, -1, 4, 5, 6, 1}};
    int64_t keys[12];

    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const struct sizes z = {12, 3, 20, POSENC_F32, POSENC_F16, 0};
        struct work w;

        work_new(&w, &z, kind, POSENC_ISA_DEFAULT);
        posenc_tensor_contiguous(&w.src, src_memory, z.from, 2, 6, 3, 20);
        if (w.plan) posenc_tensor_contiguous(&w.rows, row_memory, POSENC_F32, 2, 6, 1,
                                             w.rows.shape[3]);
        posenc_tensor_contiguous(&w.cache.rows, out_memory, z.to, 2, 8, 3, 20);
        const size_t bytes = bytes_of(&w.cache.rows);
        w.params.keys = forwards[0];
        w.params.key_stride[0] = 6;
        w.params.key_stride[1] = 1;
        memset(out_memory, 0xa5, bytes);
        append(&w);
        memcpy(other_memory, out_memory, bytes);
        for (int i = 0; i < 12; i++) keys[11 - i] = forwards[i / 6][i % 6];
        w.params.keys = keys + 11;
        w.params.key_stride[0] = -6;
        w.params.key_stride[1] = -1;
        memset(out_memory, 0xa5, bytes);
        append(&w);
        assert_memory_equal(out_memory, other_memory, bytes);
        w.params.keys = keys + 5;
        w.params.key_stride[0] = 0;
        memset(out_memory, 0xa5, bytes);
        append(&w);
        /* sequence 1 as before, sequence 0 by its keys */
        assert_memory_equal((char *)out_memory + bytes / 2, (char *)other_memory + bytes / 2,
                            bytes / 2);
        assert_memory_not_equal(out_memory, other_memory, bytes / 2);
        posenc_plan_free(w.plan);
    }
}

/* Above 1 MiB a call asks for lines ahead of itself, but on CPUs of AMD: test_ahead. */
static void a_large_call_is_as_small_ones(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * KINDS; i++) {
        const struct sizes z = {700, 9, 128, POSENC_F32 + i % 3, POSENC_F32 + i / 3 % 3,
                                i % 2};
        struct work w;

        work_new(&w, &z, i / 3, POSENC_ISA_DEFAULT);
        assert_true(bytes_of(&w.src) > 1 << 20);
        append(&w);
        memcpy(other_memory, out_memory, bytes_of(&w.out));
        memset(out_memory, 0xa5, bytes_of(&w.out));
        for (int64_t t = 0, n = 1; t < z.tokens; t += n, n = n % 100 + 13)
            append_part(&w, t, n < z.tokens - t ? n : z.tokens - t);
        assert_memory_equal(out_memory, other_memory, bytes_of(&w.out));
        posenc_plan_free(w.plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_needs_less_than_64_KiB_of_stack),
        cmocka_unit_test(nothing_beyond_is_read_or_written),
        cmocka_unit_test(in_place_is_as_elsewhere),
        cmocka_unit_test(heads_may_be_wide),
        cmocka_unit_test(heads_may_be_many),
        cmocka_unit_test(int8_is_what_floats_become),
        cmocka_unit_test(keys_may_have_any_strides),
        cmocka_unit_test(a_large_call_is_as_small_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
