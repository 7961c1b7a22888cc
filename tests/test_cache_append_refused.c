/* SPDX-License-Identifier: MIT */
/* What an append refuses: each argument wrong in each way, with its text, and nothing written. */
#include "support/test.h"

#include <math.h>

enum { ARGUMENT = POSENC_ERROR_ARGUMENT, POSITION = POSENC_ERROR_POSITION };
enum { OVERLAP = POSENC_ERROR_OVERLAP, UNSUPPORTED = POSENC_ERROR_UNSUPPORTED };
enum { SEQUENCES = 2, TOKENS = 3, SLOTS = 8, HEADS = 2, CHANNELS = 32, WIDTH = 16 };

/* All memory that a call may reach, so that "nothing written" is one comparison. */
static struct {
    float rows[SEQUENCES * SLOTS * HEADS * CHANNELS], src[SEQUENCES * TOKENS * HEADS * CHANNELS];
    float row[SEQUENCES * TOKENS * WIDTH], weight[HEADS * CHANNELS], scales[64];
    int64_t starts[SEQUENCES + 2], keys[SEQUENCES * TOKENS];
    int32_t pages[SEQUENCES * 4];
} memory, before;

static struct {
    posenc_append_params params;
    posenc_cache cache;
    posenc_tensor src, rows, weight;
    posenc_plan *plan;
    posenc_cache_header header;
} now;

static int setup(void **state)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, CHANNELS, WIDTH);

    (void)state;
    now.plan = test_plan(&params);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    posenc_plan_free(now.plan);
    return 0;
}

/* A call that is right in all arguments: norm, weight and rotation. */
static void fresh(void)
{
    posenc_tensor rows;

    for (size_t i = 0; i < sizeof memory / sizeof(float); i++) ((float *)&memory)[i] = 0.25f;
    for (int i = 0; i < SEQUENCES + 2; i++) memory.starts[i] = i;
    for (int i = 0; i < SEQUENCES * TOKENS; i++) memory.keys[i] = i;
    for (int i = 0; i < SEQUENCES * 4; i++) memory.pages[i] = i % 2;
    posenc_tensor_contiguous(&now.src, memory.src, POSENC_F32, SEQUENCES, TOKENS, HEADS, CHANNELS);
    posenc_tensor_contiguous(&now.rows, memory.row, POSENC_F32, SEQUENCES, TOKENS, 1, WIDTH);
    posenc_tensor_contiguous(&now.weight, memory.weight, POSENC_F32, 1, 1, HEADS, CHANNELS);
    posenc_tensor_contiguous(&rows, memory.rows, POSENC_F32, SEQUENCES, SLOTS, HEADS, CHANNELS);
    posenc_cache_plain(&now.cache, &rows);
    posenc_append_params_init(&now.params);
    now.params.rope = now.plan;
    now.params.rows = &now.rows;
    now.params.norm = POSENC_NORM_HEAD;
    now.params.weight = &now.weight;
}

static void refuse(int32_t expected, const char *words)
{
    posenc_error error = {0, ""};

    memcpy(&before, &memory, sizeof memory);
    test_refused(posenc_cache_append(&now.params, &now.src, &now.cache, &error), expected, &error,
                 words);
    assert_int_equal(posenc_cache_append(&now.params, &now.src, &now.cache, NULL), expected);
    assert_memory_equal(&memory, &before, sizeof memory);
    fresh();
}

static void accept(void)
{
    posenc_error error = {0, ""};

    test_ok(posenc_cache_append(&now.params, &now.src, &now.cache, &error), &error);
    fresh();
}

#define WITH(field, value, status, words) (now.field = (value), refuse(status, words))

static void params_are_checked(void **state)
{
    (void)state;
    fresh();
    accept();
    WITH(params.struct_size, 0, ARGUMENT, "params.struct_size is 0");
    WITH(params.isa, 99, ARGUMENT, "params.isa is 99");
    WITH(params.norm, 3, ARGUMENT, "params.norm is 3|POSENC_NORM_");
    WITH(params.norm, -1, ARGUMENT, "params.norm is -1");
    WITH(params.norm, 0, ARGUMENT, "params.weight is given|POSENC_NORM_NONE");
    WITH(params.norm_after, 2, ARGUMENT, "params.norm_after is 2|0 or 1");
    WITH(params.weight_plus_one, -1, ARGUMENT, "params.weight_plus_one is -1");
    WITH(params.stream, 2, ARGUMENT, "params.stream is 2");
    WITH(params.eps, -1e-9, ARGUMENT, "params.eps is -1e-09|0..1");
    WITH(params.eps, 1.5, ARGUMENT, "params.eps is 1.5");
    WITH(params.eps, (double)NAN, ARGUMENT, "params.eps is nan");
    WITH(params.scale, (double)INFINITY, ARGUMENT, "params.scale is inf|finite");
    WITH(params.scale, 1e39, ARGUMENT, "params.scale is 1e+39|float");
    WITH(params.scale, (double)NAN, ARGUMENT, "params.scale is nan");
    WITH(params.rope, NULL, ARGUMENT, "params.rows is given|params.rope is NULL");
    WITH(params.rows, NULL, ARGUMENT, "params.rope is given|params.rows is NULL");
    now.params.weight = NULL;
    WITH(params.weight_plus_one, 1, ARGUMENT, "params.weight_plus_one is 1|weight is NULL");
    now.params.weight = NULL;
    now.params.norm = 0;
    WITH(params.norm_after, 1, ARGUMENT, "params.norm_after is given|POSENC_NORM_NONE");
    posenc_error error = {0, ""};
    test_refused(posenc_cache_append(NULL, &now.src, &now.cache, &error), ARGUMENT, &error,
                 "params is NULL");
    test_refused(posenc_cache_append(&now.params, NULL, &now.cache, &error), ARGUMENT, &error,
                 "src is NULL");
    test_refused(posenc_cache_append(&now.params, &now.src, NULL, &error), ARGUMENT, &error,
                 "cache is NULL");
}

static void tensors_are_checked(void **state)
{
    (void)state;
    fresh();
    WITH(src.dtype, POSENC_I8, ARGUMENT, "src.dtype is 7");
    WITH(src.dtype, POSENC_F64, ARGUMENT, "src.dtype is 6");
    WITH(src.data, NULL, ARGUMENT, "src.data is NULL");
    WITH(src.shape[0], 1, ARGUMENT, "src.shape[0] is 1|sequences of the cache (2)");
    WITH(src.shape[2], 1, ARGUMENT, "src has 1 heads of 32|2 of 32");
    WITH(src.shape[3], 16, ARGUMENT, "src has 2 heads of 16|2 of 32");
    WITH(rows.dtype, POSENC_F16, ARGUMENT, "params.rows.dtype is 2");
    WITH(rows.dtype, POSENC_F64, ARGUMENT, "params.rows is [2, 3, 1, 16] of dtype 6|POSENC_F32");
    WITH(rows.shape[3], 14, ARGUMENT, "params.rows is [2, 3, 1, 14]|16] of POSENC_F32");
    WITH(rows.shape[2], 2, ARGUMENT, "params.rows is [2, 3, 2, 16]");
    WITH(rows.shape[0], 3, ARGUMENT, "params.rows.shape[0] is 3|batch of src (2)");
    WITH(rows.shape[1], 2, ARGUMENT, "params.rows.shape[1] is 2|tokens of src (3)");
    WITH(weight.dtype, POSENC_I8, ARGUMENT, "params.weight.dtype is 7");
    WITH(weight.shape[0], 2, ARGUMENT, "params.weight is [2, 1, 2, 32]|[1, 1, 1 or 2, 32]");
    WITH(weight.shape[2], 3, ARGUMENT, "params.weight is [1, 1, 3, 32]");
    WITH(weight.shape[3], 16, ARGUMENT, "params.weight is [1, 1, 2, 16]");
    WITH(cache.kind, 0, ARGUMENT, "cache.kind is 0");
    now.cache.rows.shape[3] = 31;
    WITH(src.shape[3], 31, ARGUMENT, "src.shape[3] is 31|head_dim (32)|rotary_dim (16)");
    now.cache.rows.shape[3] = now.src.shape[3] = 8192;
    now.cache.rows.shape[0] = now.src.shape[0] = 0;
    WITH(params.norm_after, 1, UNSUPPORTED, "src.shape[3] is 8192|1..4096|norm_after");
    now.rows.shape[0] = 1;
    accept();
}

static void headers_are_checked(void **state)
{
    (void)state;
    fresh();
    test_ok(posenc_cache_header_init(&now.header, &now.cache, NULL, NULL), NULL);
    WITH(cache.header, &now.header, ARGUMENT, "not rotated|params.rope is given");
    test_ok(posenc_cache_header_init(&now.header, &now.cache, now.plan, NULL), NULL);
    now.cache.header = &now.header;
    accept();
    now.params.rope = NULL;
    now.params.rows = NULL;
    WITH(cache.header, &now.header, ARGUMENT, "are rotated|params.rope is NULL");
    now.header.base = 500;
    now.header.fingerprint[3] ^= 1;
    WITH(cache.header, &now.header, ARGUMENT, "base 500|params.rope has 10000");
}

static void places_are_checked(void **state)
{
    (void)state;
    fresh();
    WITH(params.start, -1, ARGUMENT, "params.start is -1|0..2^53");
    WITH(params.start, 6, POSITION, "cache: the keys from 6 on, 3 of them, of sequence 0|0..7");
    memory.starts[1] = -2;
    WITH(params.starts, memory.starts, ARGUMENT, "params.starts[1] is -2|0..2^53");
    memory.starts[1] = 7;
    WITH(params.starts, memory.starts, POSITION, "keys from 7 on|sequence 1");
    WITH(params.starts, (int64_t *)((char *)memory.starts + 1), ARGUMENT, "params.starts|aligned");
    WITH(params.sequences, -1, ARGUMENT, "params.sequences is -1");
    WITH(params.sequences, 3, ARGUMENT, "params.sequences is 3|sequences of the cache (2)");
    WITH(params.sequences, 2, ARGUMENT, "src.shape[0] is 2|params.sequences 2|batch row 0");
    WITH(params.token_starts, memory.starts, ARGUMENT, "params.token_starts|sequences 0");
    now.src.shape[0] = now.rows.shape[0] = 1;
    WITH(params.sequences, 2, ARGUMENT, "params.token_starts is NULL");
    now.src.shape[0] = now.rows.shape[0] = 1;
    now.params.sequences = 2;
    WITH(params.token_starts, memory.starts, ARGUMENT, "params.token_starts[2] is 2: must be 3");
    now.src.shape[0] = now.rows.shape[0] = 1;
    now.params.sequences = 2;
    memory.starts[1] = 4;
    WITH(params.token_starts, memory.starts, ARGUMENT, "params.token_starts[1] is 4: must be 0..3");
    WITH(params.key_stride[1], 1, ARGUMENT, "params.key_stride is [0, 1]|keys is NULL");
    now.params.start = 1;
    WITH(params.keys, memory.keys, ARGUMENT, "params.keys is given with start");
    now.params.keys = memory.keys;
    WITH(params.key_stride[0], INT64_MAX, ARGUMENT, "params.key_stride[0] is 9223372036854775807");
    WITH(params.keys, memory.keys, ARGUMENT, "params.key_stride[1] is 0 with 3 tokens");
    now.params.keys = memory.keys;
    now.params.key_stride[1] = 1;
    memory.keys[2] = 8;
    refuse(POSITION, "cache: the keys from 8 on, 1 of them, of sequence 0");
}

static void pages_are_checked(void **state)
{
    (void)state;
    fresh();
    now.cache.kind = POSENC_CACHE_PAGED;
    now.cache.pages = memory.pages;
    now.cache.page_stride = 4;
    now.cache.sequences = SEQUENCES;
    now.cache.sequence_pages = 4;
    memory.pages[5] = 2;
    now.params.start = 6;
    refuse(POSITION, "cache.pages: entry 1 of sequence 1 is 2: must be 0..1");
}

/* A src that is the whole cache, of two tokens a sequence. */
static void lie_in_place(void)
{
    now.src.data = memory.rows;
    now.src.shape[1] = now.cache.rows.shape[1] = now.rows.shape[1] = 2;
    now.src.stride[0] = now.cache.rows.stride[0];
}

static void places_in_place_are_checked(void **state)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, CHANNELS, WIDTH);

    (void)state;
    fresh();
    lie_in_place();
    accept();
    lie_in_place();
    now.params.keys = memory.keys;
    now.params.key_stride[1] = 1;
    memory.keys[0] = 1;
    memory.keys[1] = 0;
    refuse(OVERLAP, "cache.rows is src|token 0 of batch row 0|slot 1 of block 0|where it is");
    lie_in_place();
    now.cache.kind = POSENC_CACHE_PAGED;
    now.cache.pages = memory.pages + 1;
    now.cache.page_stride = 1;
    now.cache.sequences = SEQUENCES;
    now.cache.sequence_pages = 1;
    refuse(OVERLAP, "cache.rows is src|token 0 of batch row 0|slot 0 of block 1|where it is");
    params.out_layout = POSENC_ADJACENT;
    posenc_plan *across = test_plan(&params);
    lie_in_place();
    WITH(params.rope, across, ARGUMENT, "cache.rows is src|out_layout (1)|layout (2)");
    posenc_plan_free(across);
}

static void memory_is_checked(void **state)
{
    (void)state;
    fresh();
    WITH(src.data, memory.rows + 5, OVERLAP, "cache and src share memory");
    WITH(rows.data, memory.rows + 5, OVERLAP, "cache and params.rows share memory");
    WITH(weight.data, memory.rows + 5, OVERLAP, "cache and params.weight share memory");
    WITH(params.starts, (int64_t *)(void *)memory.rows, ARGUMENT, "params.starts[0]");
    memset(memory.rows, 0, 64);
    WITH(params.starts, (int64_t *)(void *)memory.rows, OVERLAP, "cache and params.starts share");
    memset(memory.rows, 0, 64);
    WITH(params.keys, (int64_t *)(void *)memory.rows, OVERLAP, "cache and params.keys share");
    WITH(cache.rows.stride[2], 0, OVERLAP, "share memory");
}

/* One token without a norm, whose checks are cut short. */
static void fresh_token(int64_t heads, int64_t channels)
{
    fresh();
    posenc_append_params_init(&now.params);
    now.src.shape[0] = now.src.shape[1] = now.cache.rows.shape[0] = 1;
    now.src.shape[2] = now.cache.rows.shape[2] = heads;
    now.src.shape[3] = now.cache.rows.shape[3] = channels;
}

static void one_plain_token_is_checked(void **state)
{
    static const int64_t wide = (INT64_C(1) << 62) + 5; /* 20 bytes, but for what is lost above */

    (void)state;
    fresh_token(1, 0);
    refuse(ARGUMENT, "src.shape[3] is 0");
    fresh_token(2, 0);
    refuse(ARGUMENT, "src.shape[3] is 0");
    fresh_token(1, -5);
    refuse(ARGUMENT, "src.shape[3] is -5");
    fresh_token(1, -5);
    now.src.data = now.cache.rows.data;
    refuse(ARGUMENT, "src.shape[3] is -5");
    fresh_token(1, wide);
    now.cache.rows.shape[1] = 1;
    refuse(ARGUMENT, "src|address space");
    fresh_token(1, CHANNELS);
    now.cache.rows.stride[1] = CHANNELS - 1;
    refuse(OVERLAP, "share memory");
    fresh_token(-1, CHANNELS);
    refuse(ARGUMENT, "src.shape[2] is -1");
    fresh_token(1, CHANNELS);
    now.params.start = SLOTS;
    refuse(POSITION, "keys from 8");
    fresh_token(1, CHANNELS);
    now.params.start = -1;
    refuse(ARGUMENT, "params.start is -1");
    /* The stride of a single head means nothing. */
    fresh_token(1, CHANNELS);
    now.src.stride[2] = now.cache.rows.stride[2] = INT64_MAX;
    memory.src[CHANNELS - 1] = 8;
    test_ok(posenc_cache_append(&now.params, &now.src, &now.cache, NULL), &(posenc_error){0, ""});
    assert_true(memory.rows[CHANNELS - 1] == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(params_are_checked),  cmocka_unit_test(tensors_are_checked),
        cmocka_unit_test(headers_are_checked), cmocka_unit_test(places_are_checked),
        cmocka_unit_test(pages_are_checked),   cmocka_unit_test(memory_is_checked),
        cmocka_unit_test(places_in_place_are_checked),
        cmocka_unit_test(one_plain_token_is_checked),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
