/* SPDX-License-Identifier: MIT */
/* Keys copied between caches of all kinds and types, gathered, and moved down in one memory. */
#include "cache_store.h"
#include "support/half.h"

enum { KEYS = 300 };

static size_t head_bytes(const struct store *s)
{
    return (size_t)s->form.channels * test_size(s->form.dtype);
}

static int is_plain(const struct store *a, const struct store *b)
{
    return a->form.dtype == b->form.dtype && a->form.scale_dtype == b->form.scale_dtype &&
           a->form.groups == b->form.groups;
}

/* One key by the plain way. */
static void expect_key(const struct store *from, int64_t a, int64_t key, const struct store *to,
                       int64_t b, int64_t becomes)
{
    float values[4096];
    for (int64_t h = 0; h < to->form.heads; h++) {
        for (int64_t c = 0; c < to->form.channels; c++)
            values[c] = store_value(from, a, key, h, c);
        if (!is_plain(from, to)) {
            store_part(to, b, becomes, h, values, 0, to->form.channels);
            continue;
        }
        memmove(store_row(to, b, becomes, h), store_row(from, a, key, h), head_bytes(to));
        if (to->form.groups)
            memmove(store_scale(to, b, becomes, h), store_scale(from, a, key, h),
                    (size_t)to->form.groups * test_size(to->form.scale_dtype));
    }
}

/* Keys of `s` that every sequence stores: [low, high). */
static void common_range(const struct store *s, struct test_random *random, int64_t *low,
                         int64_t *high)
{
    const int late = test_below(random, 2) != 0 || s->form.keep == 0;
    store_range(s, 0, late, low, high);
    for (int64_t i = 1; i < s->form.sequences; i++) {
        int64_t a, b;
        store_range(s, i, late, &a, &b);
        *low = a > *low ? a : *low;
        *high = b < *high ? b : *high;
    }
    if (s->form.kind == POSENC_CACHE_RING && late)
        *high += test_below(random, 50); /* later ones overwrite */
}

struct request {
    int64_t from_sequence, from_first, to_sequence, first, count, keys[KEYS];
    int gather;
};

static int any_request(struct request *r, const struct store *from, const struct store *to,
                       struct test_random *random)
{
    int64_t low, high, to_low, to_high;
    common_range(from, random, &low, &high);
    common_range(to, random, &to_low, &to_high);
    if (high <= low || to_high <= to_low) return 0;
    const int all = from->form.sequences == to->form.sequences && test_below(random, 2);
    r->from_sequence = all ? -1 : (int64_t)test_below(random, (uint32_t)from->form.sequences);
    r->to_sequence = all ? -1 : (int64_t)test_below(random, (uint32_t)to->form.sequences);
    r->gather = test_below(random, 2) != 0;
    r->first = to_low + test_below(random, (uint32_t)(to_high - to_low));
    r->from_first = low + test_below(random, (uint32_t)(high - low));
    r->count = to_high - r->first;
    if (!r->gather && high - r->from_first < r->count) r->count = high - r->from_first;
    for (int64_t t = 0; t < r->count; t++) {
        r->keys[t] = low + test_below(random, (uint32_t)(high - low));
        if (t && test_below(random, 3) && r->keys[t - 1] + 1 < high)
            r->keys[t] = r->keys[t - 1] + 1;
    }
    return 1;
}

static int32_t call(const struct request *r, const struct store *from, const struct store *to,
                    posenc_error *error)
{
    return posenc_cache_copy(&from->cache, r->from_sequence, r->gather ? 0 : r->from_first,
                             r->gather ? r->keys : NULL, &to->cache, r->to_sequence, r->first,
                             r->count, error);
}

static void one_case(struct test_random *random)
{
    static struct request r;
    struct store_form forms[2] = {store_any(random), store_any(random)};
    struct store from, to;
    posenc_error error = {0, ""};
    forms[1].heads = forms[0].heads;
    forms[1].channels = forms[0].channels;
    if (forms[1].groups > 1) forms[1].groups = forms[1].channels / 32;
    store_new(&from, &forms[0], random);
    store_new(&to, &forms[1], random);
    if (any_request(&r, &from, &to, random)) {
        void *before = store_snapshot(&to);
        const int64_t sequences = r.to_sequence < 0 ? to.form.sequences : 1;
        for (int64_t i = 0; i < sequences; i++)
            for (int64_t t = 0; t < r.count; t++)
                expect_key(&from, r.from_sequence < 0 ? i : r.from_sequence,
                           r.gather ? r.keys[t] : r.from_first + t, &to,
                           r.to_sequence < 0 ? i : r.to_sequence, r.first + t);
        void *after = store_snapshot(&to);
        store_restore(&to, before);
        test_ok(call(&r, &from, &to, &error), &error);
        if (!store_same(&to, after))
            fail_msg("kinds %d to %d, dtypes %d to %d, %lld keys", forms[0].kind, forms[1].kind,
                     forms[0].dtype, forms[1].dtype, (long long)r.count);
    }
    store_free(&from);
    store_free(&to);
}

static void any_cache_into_any_other(void **state)
{
    struct test_random random = {22};
    (void)state;
    for (int i = 0; i < (test_quick() ? 300 : 3000); i++)
        one_case(&random);
}

/* Keys dropped here and there, the rest moved down over them: what was read is what was there. */
static void compact(struct test_random *random)
{
    static struct request r;
    const struct store_form form = store_any(random);
    struct store s, old;
    posenc_error error = {0, ""};
    int64_t low, high;
    store_new(&s, &form, random);
    store_range(&s, 0, 1, &low, &high);
    r = (struct request){.gather = test_below(random, 2) != 0, .first = low};
    for (int64_t key = low; key < high; key++)
        if (test_below(random, 3)) r.keys[r.count++] = key;
    r.from_first = high - r.count;
    old = s;
    old.rows_memory = store_snapshot(&s);
    old.scales_memory = (char *)old.rows_memory + s.rows_bytes;
    old.cache.rows.data =
        (char *)old.rows_memory + ((char *)s.cache.rows.data - (char *)s.rows_memory);
    if (form.groups)
        old.cache.scales.data =
            (char *)old.scales_memory + ((char *)s.cache.scales.data - (char *)s.scales_memory);
    for (int64_t t = 0; t < r.count; t++)
        expect_key(&old, 0, r.gather ? r.keys[t] : r.from_first + t, &s, 0, r.first + t);
    void *after = store_snapshot(&s);
    store_restore(&s, old.rows_memory);
    test_ok(call(&r, &s, &s, &error), &error);
    assert_true(store_same(&s, after));
    store_free(&s);
}

static void keys_move_down_in_one_memory(void **state)
{
    struct test_random random = {23};
    (void)state;
    for (int i = 0; i < (test_quick() ? 100 : 1000); i++)
        compact(&random);
}

/* ------------------------------------------------------------------------------------------------
 * Every small request within one memory: what is accepted reads no token that it wrote.
 * --------------------------------------------------------------------------------------------- */

enum { SLOTS = 6, PAGES = 6 };

static float small[PAGES * SLOTS];
static int32_t tables[2][PAGES] = {{4, 0, 2, 1, 5, 3}, {4, 0, 3, 5, 1, 2}};

static posenc_cache small_cache(int32_t kind, int64_t keep)
{
    posenc_tensor t;
    posenc_cache c;
    const int paged = kind == POSENC_CACHE_PAGED;
    posenc_tensor_contiguous(&t, small, POSENC_F32, paged ? PAGES : 2, paged ? 1 : SLOTS, 1, 1);
    posenc_cache_plain(&c, &t);
    c.kind = kind;
    c.keep = keep;
    if (paged) {
        c.pages = tables[0];
        c.page_stride = PAGES;
        c.sequences = 2;
        c.sequence_pages = PAGES;
    }
    return c;
}

static int64_t place(const posenc_cache *c, int64_t sequence, int64_t key)
{
    int64_t block, slot;
    posenc_error error = {0, ""};
    test_ok(posenc_cache_locate(c, sequence, key, &block, &slot, &error), &error);
    return block * c->rows.shape[1] + slot;
}

/* 1 if it was accepted. */
static int try_copy(const posenc_cache *from, int64_t a, int64_t from_first,
                    const posenc_cache *to, int64_t b, int64_t first, int64_t count)
{
    float before[PAGES * SLOTS];
    posenc_error error = {0, ""};
    int safe = 1;
    for (int i = 0; i < PAGES * SLOTS; i++) before[i] = small[i] = (float)i;
    int32_t status = posenc_cache_copy(from, a, from_first, NULL, to, b, first, count, &error);
    for (int64_t t = 0; t < count; t++)
        for (int64_t later = t + 1; later < count; later++)
            safe &= place(to, b, first + t) != place(from, a, from_first + later);
    if (status) {
        assert_int_equal(status, POSENC_ERROR_OVERLAP);
        assert_memory_equal(small, before, sizeof before);
        return 0;
    }
    assert_true(safe);
    for (int64_t t = 0; t < count; t++)
        assert_true(small[place(to, b, first + t)] == before[place(from, a, from_first + t)]);
    return 1;
}

static void what_is_accepted_reads_first(void **state)
{
    int64_t accepted = 0, tried = 0, turns[2] = {1, 1};
    (void)state;
    for (int32_t kind = 1; kind <= 3; kind++)
        for (int64_t keep = 0; keep < (kind == POSENC_CACHE_RING ? SLOTS : 1); keep++)
            for (int way = 0; way < 8; way++) {
                posenc_cache from = small_cache(kind, keep), to = from;
                const int64_t most = kind == POSENC_CACHE_RING ? 2 * SLOTS : SLOTS;
                if (way & 4 && kind == POSENC_CACHE_RING) to.turns = turns;
                for (int64_t first = 0; first < most; first++)
                    for (int64_t from_first = 0; from_first < most; from_first++)
                        for (int64_t n = 1; n <= SLOTS - keep && first + n <= most &&
                                            from_first + n <= most; n++, tried++) {
                            int done = try_copy(&from, way & 1, from_first, &to, way >> 1 & 1,
                                                first, n);
                            if (kind != POSENC_CACHE_RING && (way & 1) == (way >> 1 & 1) &&
                                from_first >= first)
                                assert_true(done);
                            if (kind != POSENC_CACHE_PAGED && (way & 1) != (way >> 1 & 1))
                                assert_true(done);
                            accepted += done;
                        }
            }
    assert_true(accepted > tried / 4 && accepted < tried);
}

/* ------------------------------------------------------------------------------------------------
 * Refusals
 * --------------------------------------------------------------------------------------------- */

static posenc_cache_header header_of(const posenc_cache *cache, const posenc_rope_params *params)
{
    posenc_cache_header header;
    posenc_error error = {0, ""};
    posenc_plan *plan = params ? test_plan(params) : NULL;
    test_ok(posenc_cache_header_init(&header, cache, plan, &error), &error);
    posenc_plan_free(plan);
    return header;
}

static void refusals(void **state)
{
    static float a[2 * 4 * 8], b[2 * 4 * 8], mark[2 * 4 * 8];
    static int64_t keys[2] = {0, 9};
    posenc_rope_params p = test_params(POSENC_ADJACENT, 8, 8), q = p;
    posenc_tensor t;
    posenc_cache from, to, other;
    posenc_cache_header one, two;
    posenc_error error = {0, ""};
    (void)state;
    posenc_tensor_contiguous(&t, a, POSENC_F32, 2, 4, 1, 8);
    posenc_cache_plain(&from, &t);
    t.data = b;
    posenc_cache_plain(&to, &t);
    memcpy(mark, b, sizeof b);
#define REFUSED(from, fs, ff, keys, to, ts, first, count, status, words)                       \
    test_refused(posenc_cache_copy(from, fs, ff, keys, to, ts, first, count, &error), status,  \
                 &error, words)
    REFUSED(NULL, 0, 0, NULL, &to, 0, 0, 1, POSENC_ERROR_ARGUMENT, "from is NULL");
    REFUSED(&from, 0, 0, NULL, NULL, 0, 0, 1, POSENC_ERROR_ARGUMENT, "to is NULL");
    REFUSED(&from, 2, 0, NULL, &to, 0, 0, 1, POSENC_ERROR_ARGUMENT, "from_sequence is 2|-1..1");
    REFUSED(&from, 0, 0, NULL, &to, -2, 0, 1, POSENC_ERROR_ARGUMENT, "to_sequence is -2");
    REFUSED(&from, -1, 0, NULL, &to, 0, 0, 1, POSENC_ERROR_ARGUMENT, "from_sequence is -1|both");
    REFUSED(&from, 0, 0, NULL, &to, 0, 0, -1, POSENC_ERROR_ARGUMENT, "count is -1");
    REFUSED(&from, 0, 1, keys, &to, 0, 0, 1, POSENC_ERROR_ARGUMENT, "from_first is 1|keys");
    REFUSED(&from, 0, 0, keys, &to, 0, 0, 2, POSENC_ERROR_POSITION, "from: the keys from 9");
    REFUSED(&from, 0, 2, NULL, &to, 0, 0, 3, POSENC_ERROR_POSITION, "from: the keys from 2");
    REFUSED(&from, 0, 0, NULL, &to, 0, 2, 3, POSENC_ERROR_POSITION, "to: the keys from 2");
    REFUSED(&from, 0, 0, (const int64_t *)(void *)b, &to, 0, 0, 2, POSENC_ERROR_OVERLAP,
            "to and keys share");
    other = to;
    other.rows.shape[3] = 4;
    REFUSED(&from, 0, 0, NULL, &other, 0, 0, 1, POSENC_ERROR_ARGUMENT, "8 channels, to has 1 of 4");
    other = to;
    other.rows.shape[0] = 1;
    REFUSED(&from, -1, 0, NULL, &other, -1, 0, 1, POSENC_ERROR_ARGUMENT, "2 sequences, to has 1");
    other = from;
    other.rows.data = a + 8;
    other.rows.shape[0] = 1;
    REFUSED(&from, 0, 0, NULL, &other, 0, 0, 1, POSENC_ERROR_OVERLAP, "share memory");
    REFUSED(&from, 0, 0, NULL, &from, 0, 1, 2, POSENC_ERROR_OVERLAP, "key 0 of from becomes key 1");
    one = header_of(&from, &p);
    two = header_of(&to, NULL);
    from.header = &one;
    to.header = &two;
    REFUSED(&from, 0, 0, NULL, &to, 0, 0, 1, POSENC_ERROR_ARGUMENT,
            "from.header|are rotated|to.header are not rotated");
    q.base = 500000;
    two = header_of(&to, &q);
    REFUSED(&from, 0, 0, NULL, &to, 0, 0, 1, POSENC_ERROR_ARGUMENT,
            "from.header|base 10000|to.header has 500000");
    assert_memory_equal(mark, b, sizeof b);
    two = header_of(&to, &p);
    test_ok(posenc_cache_copy(&from, 0, 0, NULL, &to, 0, 0, 1, &error), &error);
    to.header = NULL;
    test_ok(posenc_cache_copy(&from, 0, 0, NULL, &to, 0, 0, 1, &error), &error);
#undef REFUSED
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cache_into_any_other),
        cmocka_unit_test(keys_move_down_in_one_memory),
        cmocka_unit_test(what_is_accepted_reads_first),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
