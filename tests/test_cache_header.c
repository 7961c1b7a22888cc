/* SPDX-License-Identifier: MIT */
/* Headers: what they say of a cache, and the text for each fact that another plan contradicts. */
#include "support/test.h"

enum { SLOTS = 4, WIDTH = 64, PAIRS = WIDTH / 2 };

static float rows[SLOTS * WIDTH], scales[SLOTS * 2];
static int8_t eight[SLOTS * WIDTH];

static posenc_cache cache_of(int32_t dtype, int64_t groups)
{
    posenc_tensor t;
    posenc_cache c;
    posenc_tensor_contiguous(&t, dtype == POSENC_I8 ? (void *)eight : (void *)rows, dtype, 1, SLOTS,
                             1, WIDTH);
    posenc_cache_plain(&c, &t);
    if (groups)
        posenc_tensor_contiguous(&c.scales, scales, POSENC_F16, 1, SLOTS, 1, groups);
    return c;
}

static posenc_rope_params first_params(void)
{
    posenc_rope_params p = test_params(POSENC_ADJACENT, WIDTH, 32);
    p.out_layout = POSENC_SPLIT_HALF;
    p.rotary_offset = 8;
    p.scaling = POSENC_SCALING_YARN;
    p.factor = 4;
    p.original_max_position = 4096;
    return p;
}

static posenc_cache_header header_of(const posenc_cache *cache, const posenc_rope_params *p)
{
    posenc_cache_header header;
    posenc_error error = {0, ""};
    posenc_plan *plan = p ? test_plan(p) : NULL;
    memset(&header, 0xa5, sizeof header);
    test_ok(posenc_cache_header_init(&header, cache, plan, &error), &error);
    if (plan) {
        uint8_t fingerprint[16];
        test_ok(posenc_plan_fingerprint(plan, fingerprint, &error), &error);
        assert_memory_equal(fingerprint, header.fingerprint, 16);
    }
    posenc_plan_free(plan);
    return header;
}

static void init_describes_cache_and_plan(void **state)
{
    const posenc_rope_params p = first_params();
    posenc_cache cache = cache_of(POSENC_BF16, 0);
    posenc_cache_header h = header_of(&cache, &p);
    (void)state;
    assert_int_equal(h.struct_size, sizeof h);
    assert_int_equal(h.dtype, POSENC_BF16);
    assert_int_equal(h.scale_dtype | h.group | h.reserved, 0);
    assert_int_equal(h.layout, POSENC_SPLIT_HALF); /* what is stored */
    assert_int_equal(h.head_dim, WIDTH);
    assert_int_equal(h.rotary_dim, 32);
    assert_int_equal(h.rotary_offset, 8);
    assert_int_equal(h.scaling, POSENC_SCALING_YARN);
    assert_int_equal(h.recipe, POSENC_RECIPE_EXACT);
    assert_int_equal(h.axes, 1);
    assert_true(h.base == 10000 && h.factor == 4 && h.attention_factor > 1.13);
    assert_true(h.first_key == 0 && h.revision == 0);
    cache = cache_of(POSENC_I8, 2);
    h = header_of(&cache, NULL);
    assert_int_equal(h.dtype, POSENC_I8);
    assert_int_equal(h.scale_dtype, POSENC_F16);
    assert_int_equal(h.group, 32);
    for (int i = 0; i < 16; i++) assert_int_equal(h.fingerprint[i], 0);
    h = header_of(&cache, &p);
    cache = cache_of(POSENC_I8, 1);
    assert_int_equal(header_of(&cache, NULL).group, WIDTH);
}

static void init_refuses(void **state)
{
    const posenc_rope_params p = test_params(POSENC_ADJACENT, 128, 128);
    posenc_plan *plan = test_plan(&p);
    posenc_cache cache = cache_of(POSENC_F32, 0);
    posenc_cache_header h, mark;
    posenc_error error = {0, ""};
    (void)state;
    memset(&h, 0xa5, sizeof h);
    mark = h;
    test_refused(posenc_cache_header_init(NULL, &cache, plan, &error), POSENC_ERROR_ARGUMENT,
                 &error, "header is NULL");
    test_refused(posenc_cache_header_init(&h, NULL, plan, &error), POSENC_ERROR_ARGUMENT, &error,
                 "cache is NULL");
    test_refused(posenc_cache_header_init(&h, &cache, plan, &error), POSENC_ERROR_ARGUMENT, &error,
                 "cache.rows.shape[3] is 64|head_dim (128)");
    cache.kind = 0;
    test_refused(posenc_cache_header_init(&h, &cache, NULL, &error), POSENC_ERROR_ARGUMENT, &error,
                 "cache.kind is 0");
    assert_memory_equal(&h, &mark, sizeof h);
    posenc_plan_free(plan);
}

/* A use of the cache by another plan than that of its header. */
static void refused_by(const posenc_cache_header *header, const posenc_cache *cache,
                       const posenc_rope_params *p, const char *words)
{
    const int64_t delta = 1;
    posenc_positions deltas = {.struct_size = sizeof deltas, .kind = POSENC_POSITIONS_IDS,
                               .dtype = POSENC_I64, .ids = &delta, .length = 1};
    posenc_cache with = *cache;
    posenc_plan *plan = test_plan(p);
    posenc_error error = {0, ""};
    with.header = header;
    int32_t status = posenc_cache_move(plan, &deltas, &with, 0, 0, SLOTS, &error);
    if (words)
        test_refused(status, status == POSENC_ERROR_POSITION ? status : POSENC_ERROR_ARGUMENT,
                     &error, words);
    else
        test_ok(status, &error);
    posenc_plan_free(plan);
}

static void each_fact_has_its_text(void **state)
{
    const posenc_cache cache = cache_of(POSENC_F32, 0);
    const posenc_rope_params p = first_params();
    const posenc_cache_header h = header_of(&cache, &p);
    posenc_rope_params q = p;
    double inv_freq[16];
    (void)state;
    refused_by(&h, &cache, &q, NULL);
    q.isa = POSENC_ISA_SCALAR; /* no fact of a plan */
    q.max_position = 5000;
    refused_by(&h, &cache, &q, NULL);
    posenc_cache_header wider = h;
    wider.head_dim = 65;
    refused_by(&wider, &cache, &p, "cache.header says head_dim 65, rotary_dim 32|64 channels");
    q = p;
    q.out_layout = POSENC_ADJACENT;
    refused_by(&h, &cache, &q, "cache.header|layout 2, plan has 1|the same plan");
    q = p;
    q.head_dim = 72;
    q.rotary_dim = 64;
    refused_by(&h, &cache, &q, "head_dim 64, plan has 72");
    q = p;
    q.rotary_dim = 34;
    refused_by(&h, &cache, &q, "rotary_dim 32, plan has 34");
    q = p;
    q.rotary_offset = 4;
    refused_by(&h, &cache, &q, "rotary_offset 8, plan has 4");
    q = p;
    q.axes = 2;
    refused_by(&h, &cache, &q, "axes 1, plan has 2");
    q = p;
    q.scaling = POSENC_SCALING_LINEAR;
    refused_by(&h, &cache, &q, "scaling 3, plan has 1");
    q = p;
    q.recipe = POSENC_RECIPE_HF_F32;
    refused_by(&h, &cache, &q, "recipe 0, plan has 1");
    q = p;
    q.base = 500000;
    refused_by(&h, &cache, &q, "base 10000, plan has 500000");
    q = p;
    q.factor = 8;
    refused_by(&h, &cache, &q, "factor 4, plan has 8");
    q = p;
    q.attention_factor = 1;
    refused_by(&h, &cache, &q, "attention_factor 1.13862944, plan has 1");
    q = p;
    q.beta_fast = 16;
    refused_by(&h, &cache, &q, "other frequencies than those of plan|fingerprints differ");
    for (int i = 0; i < 16; i++) inv_freq[i] = i + 1;
    q.frequency_source = POSENC_FREQUENCIES_INVERSE;
    q.frequencies = inv_freq;
    q.scaling = POSENC_SCALING_NONE;
    refused_by(&h, &cache, &q, "scaling 3, plan has 0");
}

/* The same frequencies asked for in another way are the same plan. */
static void equal_plans_are_one(void **state)
{
    const posenc_cache cache = cache_of(POSENC_F32, 0);
    posenc_rope_params p = test_params(POSENC_SPLIT_HALF, WIDTH, WIDTH), q = p;
    posenc_plan *plan = test_plan(&p);
    const posenc_cache_header h = header_of(&cache, &p);
    double inv_freq[PAIRS];
    posenc_error error = {0, ""};
    (void)state;
    test_ok(posenc_plan_inv_freq(plan, inv_freq, PAIRS, &error), &error);
    q.frequency_source = POSENC_FREQUENCIES_INVERSE;
    q.frequencies = inv_freq;
    refused_by(&h, &cache, &q, NULL);
    posenc_plan_free(plan);
}

static void memory_and_rotation_must_agree(void **state)
{
    posenc_cache cache = cache_of(POSENC_F32, 0), other = cache_of(POSENC_F16, 0);
    const posenc_rope_params p = first_params();
    posenc_cache_header h = header_of(&cache, NULL);
    (void)state;
    refused_by(&h, &cache, &p, "cache.header|not rotated and plan is given");
    h = header_of(&cache, &p);
    refused_by(&h, &other, &p, "cache.header says dtype 1|the cache has 2");
    h = header_of(&other, &p);
    refused_by(&h, &cache, &p, "cache.header says dtype 2");
    cache = cache_of(POSENC_I8, 1);
    other = cache_of(POSENC_I8, 2);
    h = header_of(&other, &p);
    refused_by(&h, &cache, &p, "group 32|64");
    h = header_of(&cache, &p);
    h.first_key = -1;
    refused_by(&h, &cache, &p, "first_key is -1|0..2^53");
    h = header_of(&cache, &p);
    h.struct_size = 8;
    refused_by(&h, &cache, &p, "header.struct_size is 8");
    h = header_of(&cache, &p);
    h.first_key = 7;
    refused_by(&h, &cache, &p, "keys from 0|must lie in 7..10");
    h.first_key = 0;
    h.revision = 99; /* the caller's own */
    refused_by(&h, &cache, &p, NULL);
}

/* ------------------------------------------------------------------------------------------------
 * Where keys lie
 * --------------------------------------------------------------------------------------------- */

static void expect(const posenc_cache *cache, int64_t sequence, int64_t key, int64_t block,
                   int64_t slot)
{
    int64_t at[2] = {-9, -9};
    posenc_error error = {0, ""};
    test_ok(posenc_cache_locate(cache, sequence, key, &at[0], &at[1], &error), &error);
    assert_int_equal(at[0], block);
    assert_int_equal(at[1], slot);
}

static void locate_follows_each_kind(void **state)
{
    static float memory[2 * 8];
    static const int64_t first[2] = {10, 20}, turns[2] = {0, 3};
    static const int32_t pages[2][4] = {{3, 1, -1, -1}, {0, 2, -1, -1}};
    posenc_tensor t;
    posenc_cache c;
    (void)state;
    posenc_tensor_contiguous(&t, memory, POSENC_F32, 2, 8, 1, 1);
    posenc_cache_plain(&c, &t);
    expect(&c, 1, 5, 1, 5);
    c.first_keys = first;
    expect(&c, 1, 25, 1, 5);
    c.first_keys = NULL;
    c.kind = POSENC_CACHE_RING;
    c.keep = 3; /* five others */
    c.turns = turns;
    expect(&c, 0, 2, 0, 2);
    expect(&c, 0, 7, 0, 7);
    expect(&c, 0, 8, 0, 3);
    expect(&c, 0, 104, 0, 3 + 101 % 5);
    expect(&c, 1, 2, 1, 2);
    expect(&c, 1, 3, 1, 3 + 3);
    expect(&c, 1, 8, 1, 3 + 8 % 5);
    posenc_tensor_contiguous(&t, memory, POSENC_F32, 4, 4, 1, 1);
    posenc_cache_plain(&c, &t);
    c.kind = POSENC_CACHE_PAGED;
    c.pages = pages[0];
    c.page_stride = 4;
    c.sequences = 2;
    c.sequence_pages = 4;
    c.first_keys = first;
    expect(&c, 0, 10, 3, 0);
    expect(&c, 0, 17, 1, 3);
    expect(&c, 1, 26, 2, 2);
    posenc_error error = {0, ""};
    int64_t block, slot;
    test_refused(posenc_cache_locate(&c, 0, 18, &block, &slot, &error), POSENC_ERROR_POSITION,
                 &error, "cache.pages: entry 2 of sequence 0 is -1");
    test_refused(posenc_cache_locate(&c, 0, 9, &block, &slot, &error), POSENC_ERROR_POSITION,
                 &error, "keys from 9");
    test_refused(posenc_cache_locate(&c, 2, 10, &block, &slot, &error), POSENC_ERROR_ARGUMENT,
                 &error, "sequence is 2");
    test_refused(posenc_cache_locate(&c, 0, 10, NULL, &slot, &error), POSENC_ERROR_ARGUMENT,
                 &error, "block is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_describes_cache_and_plan),
        cmocka_unit_test(init_refuses),
        cmocka_unit_test(each_fact_has_its_text),
        cmocka_unit_test(equal_plans_are_one),
        cmocka_unit_test(memory_and_rotation_must_agree),
        cmocka_unit_test(locate_follows_each_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
