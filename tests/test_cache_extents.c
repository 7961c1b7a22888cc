/* SPDX-License-Identifier: MIT */
/* Caches of extents that no memory has: without heads, or of shared pages. */
#include "support/test.h"

static const int64_t endless = INT64_C(1) << 61, farthest = INT64_C(1) << 53;

/* [sequences][slots] without heads, or pages of so many slots. */
static posenc_cache without_heads(int32_t kind, int64_t sequences, int64_t slots)
{
    static const int32_t page[1] = {0};
    posenc_cache c;
    posenc_cache_init(&c);
    c.kind = kind;
    c.rows = (posenc_tensor){.dtype = POSENC_F32, .shape = {sequences, slots, 0, 32},
                             .stride = {0, 0, 0, 1}};
    if (kind == POSENC_CACHE_PAGED) {
        c.rows.shape[0] = 1;
        c.sequences = INT64_C(1) << 40;
        c.sequence_pages = 1;
        c.pages = page;
    }
    return c;
}

static posenc_positions one_position(const int64_t *position)
{
    return (posenc_positions){.struct_size = sizeof(posenc_positions), .dtype = POSENC_I64,
                              .kind = POSENC_POSITIONS_IDS, .ids = position};
}

/* As many sequences, or keys, as there are numbers: a call that went through them would not end. */
static void without_heads_calls_end(void **state)
{
    static const int64_t position = 1;
    const posenc_positions at = one_position(&position);
    posenc_rope_params p = test_params(POSENC_SPLIT_HALF, 32, 32);
    p.xpos = POSENC_XPOS_KEYS; /* a re-base looks at each of its rows beforehand */
    posenc_plan *plan = test_plan(&p);
    posenc_cache_header header;
    posenc_error error = {0, ""};
    int64_t block, slot;
    (void)state;
    for (int32_t kind = POSENC_CACHE_CONTIGUOUS; kind <= POSENC_CACHE_PAGED; kind++) {
        const int64_t slots = INT64_C(1) << 40;
        const int64_t most = kind == POSENC_CACHE_RING ? slots - 1 : slots;
        posenc_cache c = without_heads(kind, endless, slots), to = c;
        test_ok(posenc_cache_header_init(&header, &c, plan, &error), &error);
        test_ok(posenc_cache_locate(&c, 7, 5, &block, &slot, &error), &error);
        assert_int_equal(block, kind == POSENC_CACHE_PAGED ? 0 : 7);
        assert_int_equal(slot, 5);
        for (int empty = 0; empty < 2; empty++) {
            const int64_t count = empty ? 0 : most;
            test_ok(posenc_cache_move(plan, &at, &c, -1, 0, count, &error), &error);
            test_ok(posenc_cache_rebase(plan, &at, plan, &at, &c, -1, 0, count, &error), &error);
            test_ok(posenc_cache_copy(&c, -1, 0, NULL, &to, -1, 0, count, &error), &error);
            test_ok(posenc_cache_copy(&c, 3, 0, NULL, &to, 3, 0, count, &error), &error);
        }
        if (kind != POSENC_CACHE_RING)
            test_refused(posenc_cache_move(plan, &at, &c, -1, 1, most, &error),
                         POSENC_ERROR_POSITION, &error, "keys from 1");
    }
    posenc_plan_free(plan);
}

/* With heads but nothing to do. */
static void no_key_of_any_number_of_sequences(void **state)
{
    static float memory[4 * 32];
    static const int64_t position = 1;
    const posenc_positions at = one_position(&position);
    posenc_rope_params p = test_params(POSENC_SPLIT_HALF, 32, 32);
    posenc_plan *plan = test_plan(&p);
    posenc_cache c = without_heads(POSENC_CACHE_PAGED, 1, 4);
    posenc_error error = {0, ""};
    (void)state;
    posenc_tensor_contiguous(&c.rows, memory, POSENC_F32, 1, 4, 1, 32);
    test_ok(posenc_cache_move(plan, &at, &c, -1, 0, 0, &error), &error);
    test_ok(posenc_cache_rebase(plan, &at, plan, &at, &c, -1, 0, 0, &error), &error);
    posenc_plan_free(plan);
}

/* More slots than logical indices: the last index is the sum of both limits. */
static void slots_beyond_logical_indices(void **state)
{
    const int64_t first = farthest;
    posenc_cache c = without_heads(POSENC_CACHE_CONTIGUOUS, 1, INT64_MAX);
    posenc_error error = {0, ""};
    int64_t block, slot;
    (void)state;
    c.first_keys = &first;
    test_ok(posenc_cache_locate(&c, 0, farthest + 9, &block, &slot, &error), &error);
    assert_int_equal(slot, 9);
    test_ok(posenc_cache_locate(&c, 0, 2 * farthest - 1, &block, &slot, &error), &error);
    test_refused(posenc_cache_locate(&c, 0, 2 * farthest, &block, &slot, &error),
                 POSENC_ERROR_POSITION, &error, "keys from 18014398509481984");
    test_refused(posenc_cache_locate(&c, 0, farthest - 1, &block, &slot, &error),
                 POSENC_ERROR_POSITION, &error, "keys from");
}

/* 32 times the groups is 32 channels, but for what a product loses at its upper end. */
static void groups_do_not_wrap(void **state)
{
    posenc_cache c = without_heads(POSENC_CACHE_CONTIGUOUS, 1, 1);
    posenc_error error = {0, ""};
    int64_t block, slot;
    (void)state;
    c.rows.dtype = POSENC_I8;
    c.scales = (posenc_tensor){.dtype = POSENC_F32, .shape = {1, 1, 0, (INT64_C(1) << 59) + 1},
                               .stride = {0, 0, 0, 1}};
    test_refused(posenc_cache_locate(&c, 0, 0, &block, &slot, &error), POSENC_ERROR_ARGUMENT,
                 &error, "cache.scales.shape[3]|32 channels");
    c.scales.shape[3] = 1;
    test_ok(posenc_cache_locate(&c, 0, 0, &block, &slot, &error), &error);
}

/* One page stands for 2^64 keys of all sequences: too many for an array of their positions. */
static void key_positions_of_shared_pages(void **state)
{
    static float q[4], k[4], out[4];
    static int64_t positions[4];
    const int64_t sequences = INT64_C(1) << 34;
    posenc_alibi_params alibi;
    posenc_attention_params params;
    posenc_tensor query, result;
    posenc_error error = {0, ""};
    (void)state;
    posenc_cache c = without_heads(POSENC_CACHE_PAGED, 1, INT64_C(1) << 30);
    c.rows.data = k;
    c.rows.shape[2] = 1;
    c.rows.shape[3] = 4;
    c.sequences = sequences;
    posenc_alibi_params_init(&alibi);
    alibi.form = POSENC_ALIBI_KEY;
    alibi.heads = 1;
    alibi.key_positions = positions;
    posenc_attention_params_init(&params);
    params.alibi = &alibi;
    posenc_tensor_contiguous(&query, q, POSENC_F32, sequences, 1, 1, 4);
    query.stride[0] = 0;
    posenc_tensor_contiguous(&result, out, POSENC_F32, sequences, 1, 1, 4);
    test_refused(posenc_attention_cached(&params, &query, &c, &c, &result, &error),
                 POSENC_ERROR_ARGUMENT, &error, "params.key_positions has|address space");
    alibi.key_positions = NULL;
    result.dtype = POSENC_I8;
    test_refused(posenc_attention_cached(&params, &query, &c, &c, &result, &error),
                 POSENC_ERROR_ARGUMENT, &error, "out.dtype");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_heads_calls_end),
        cmocka_unit_test(no_key_of_any_number_of_sequences),
        cmocka_unit_test(slots_beyond_logical_indices),
        cmocka_unit_test(groups_do_not_wrap),
        cmocka_unit_test(key_positions_of_shared_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
