/* SPDX-License-Identifier: MIT */
/* Attention over caches: what is refused, with which text, and that nothing was written. */
#include "support/test.h"

enum {
    Q = 3, H = 4, HK = 2, D = 8, E = 12, SLOTS = 10, PAGES = 6, SEQUENCE_PAGES = 2, S = 2,
    FILL = 0x5b
};

/* All memory of a call: results are small enough to lie in any of it. */
static struct {
    float q[S * Q * H * D], k[PAGES * SLOTS * HK * D], v[PAGES * SLOTS * HK * E];
    float out[S * Q * H * E], state[S * Q * H * (E + 17)], lse[S * Q * H], rows[S * 20 * D];
    int64_t firsts[2 + S * Q * H * E], turns[2 + S * Q * H * E], counts[S];
    int64_t starts[S + 1], weight_rows[1];
    int32_t k_pages[S * Q * H * E], v_pages[S * Q * H * E];
    float weights[S * 1 * H * SLOTS * SEQUENCE_PAGES];
    _Alignas(64) char workspace[4096];
} memory, before;

struct call {
    posenc_attention_params params;
    posenc_tensor q, out, state, lse, weights, key_rows, query_rows;
    posenc_cache k, v;
    posenc_cache_header k_header, v_header;
    posenc_plan *plan;
    const posenc_cache *k_at, *v_at;
    int64_t first_span;
};

static posenc_plan *plan;

static void call_init(struct call *c, int32_t kind)
{
    int64_t blocks = kind == POSENC_CACHE_PAGED ? PAGES : S;
    int64_t capacity = SLOTS * (kind == POSENC_CACHE_PAGED ? SEQUENCE_PAGES : 1);
    *c = (struct call){.plan = plan, .k_at = &c->k, .v_at = &c->v};
    posenc_attention_params_init(&c->params);
    memory.counts[0] = memory.counts[1] = capacity;
    c->params.key_counts = kind == POSENC_CACHE_CONTIGUOUS ? NULL : memory.counts;
    posenc_tensor_contiguous(&c->q, memory.q, POSENC_F32, S, Q, H, D);
    posenc_tensor_contiguous(&c->out, memory.out, POSENC_F32, S, Q, H, E);
    posenc_tensor_contiguous(&c->state, memory.state, POSENC_F32, S, Q, H, E + 17);
    posenc_tensor_contiguous(&c->lse, memory.lse, POSENC_F32, S, Q, H, 1);
    posenc_tensor_contiguous(&c->weights, memory.weights, POSENC_F32, S, 1, H, capacity);
    posenc_tensor_contiguous(&c->key_rows, memory.rows, POSENC_F32, S, capacity, 1, D);
    posenc_tensor_contiguous(&c->query_rows, memory.rows, POSENC_F32, S, Q, 1, D);
    posenc_cache_init(&c->k);
    c->k.kind = kind;
    c->v = c->k;
    posenc_tensor_contiguous(&c->k.rows, memory.k, POSENC_F32, blocks, SLOTS, HK, D);
    posenc_tensor_contiguous(&c->v.rows, memory.v, POSENC_F32, blocks, SLOTS, HK, E);
    if (kind == POSENC_CACHE_PAGED) {
        c->k.sequences = c->v.sequences = S;
        c->k.sequence_pages = c->v.sequence_pages = SEQUENCE_PAGES;
        c->k.page_stride = c->v.page_stride = SEQUENCE_PAGES;
        c->k.pages = memory.k_pages;
        c->v.pages = memory.v_pages;
    }
    for (int i = 0; i < S * SEQUENCE_PAGES; i++)
        memory.k_pages[i] = memory.v_pages[i] = i;
}

static int32_t attend(const struct call *c, int by_span, posenc_error *error)
{
    return by_span ? posenc_attention_cached_spans(&c->params, &c->q, c->k_at, c->v_at,
                                                   c->first_span, &c->state, error)
                   : posenc_attention_cached(&c->params, &c->q, c->k_at, c->v_at, &c->out, error);
}

/* Whole and by spans; not what only one of them has. */
static void assert_refused(const struct call *c, int32_t status, const char *words)
{
    memset(memory.out, FILL, sizeof(memory.out));
    memset(memory.state, FILL, sizeof(memory.state));
    memcpy(&before, &memory, sizeof(memory));
    for (int by_span = 0; by_span < 2; by_span++) {
        posenc_error error = {0, ""};
        if (by_span && (c->params.lse || c->params.weights || c->params.output_rows))
            continue;
        test_refused(attend(c, by_span, &error), status, &error, words);
        assert_int_equal(attend(c, by_span, NULL), status);
        assert_memory_equal(&before, &memory, sizeof(memory));
    }
}

static void assert_fine(const struct call *c)
{
    posenc_error error = {0, ""};
    test_ok(attend(c, 0, &error), &error);
}

#define ARGUMENT POSENC_ERROR_ARGUMENT
#define AT(field) offsetof(struct call, field), sizeof(((struct call *)0)->field)
enum { PLAIN = POSENC_CACHE_CONTIGUOUS, RING = POSENC_CACHE_RING, PAGED = POSENC_CACHE_PAGED };

static const struct {
    int32_t kind;
    size_t offset, size;
    int64_t value;
    const char *words;
} bad[] = {
    {PLAIN, AT(k_at), 0, "k is NULL"},
    {PLAIN, AT(v_at), 0, "v is NULL"},
    {PLAIN, AT(q.data), 0, "q.data is NULL"},
    {PLAIN, AT(params.struct_size), 12, "params.struct_size is 12"},
    {PLAIN, AT(k.struct_size), 0, "k.struct_size is 0"},
    {PLAIN, AT(k.kind), 0, "k.kind is 0"},
    {PLAIN, AT(v.kind), RING, "v.kind is 2|must be that of k, 1"},
    {PLAIN, AT(k.rows.dtype), POSENC_F64, "k.rows.dtype is 6"},
    {PLAIN, AT(k.rows.shape[0]), 1, "v.rows.shape[0] is 2|must be that of k, 1"},
    {PLAIN, AT(v.rows.shape[1]), 9, "v.rows.shape[1] is 9|must be that of k, 10"},
    {PLAIN, AT(v.rows.shape[2]), 1, "v.rows.shape[2] is 1|must be that of k, 2"},
    {PLAIN, AT(k.rows.shape[3]), 7, "k.rows.shape[3] is 7|must be that of q, 8"},
    {PLAIN, AT(v.rows.shape[3]), 4097, "v.rows.shape[3] is 4097|1..4096"},
    {PLAIN, AT(q.shape[0]), 1, "k has 2 sequences|must be those of q, 1"},
    {PLAIN, AT(q.shape[2]), 3, "q.shape[2] is 3 heads|multiple of the 2 heads of k"},
    {PLAIN, AT(v.rows.shape[3]), 11, "must be"},
    {PLAIN, AT(params.keep), -1, "params.keep is -1|0..2^53"},
    {PLAIN, AT(params.keep), (INT64_C(1) << 53) + 1, "params.keep is 9007199254740993"},
    {PLAIN, AT(params.first_key), 1, "params.first_key is 1|must be 0, caches have their own"},
    {PLAIN, AT(params.sequences), 2, "query_starts is NULL"},
    {PLAIN, AT(k.keep), 1, "k.keep is set"},
    {RING, AT(k.keep), 10, "k.keep is 10"},
    {RING, AT(v.keep), 4, "v.keep is 4|must be that of k, 0"},
    {RING, AT(params.keep), 3, "params.keep is 3|must be 0 or that of the ring, 0"},
    {PAGED, AT(k.sequences), 1, "v.sequences is 2|must be that of k, 1"},
    {PAGED, AT(v.sequence_pages), 1, "v.sequence_pages is 1|must be that of k, 2"},
    {PAGED, AT(k.pages), 0, "k.pages is NULL"},
};

static void each_wrong_argument_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct call c;
        int32_t narrow = (int32_t)bad[i].value;
        call_init(&c, bad[i].kind);
        memcpy((char *)&c + bad[i].offset,
               bad[i].size == 4 ? (const void *)&narrow : (const void *)&bad[i].value, bad[i].size);
        if (bad[i].offset == offsetof(struct call, params.sequences))
            c.q.shape[0] = 1;
        assert_refused(&c, ARGUMENT, bad[i].words);
    }
}

static void arrays_that_caches_have_are_refused(void **state)
{
    struct call c;
    (void)state;
    call_init(&c, PLAIN);
    c.params.first_keys = memory.firsts;
    assert_refused(&c, ARGUMENT, "params.first_keys is given|must be NULL, caches have their own");
    call_init(&c, PLAIN);
    c.q.shape[0] = c.out.shape[0] = c.state.shape[0] = 1;
    memory.starts[1] = 1;
    memory.starts[2] = Q;
    c.params.sequences = S;
    c.params.query_starts = memory.starts;
    assert_fine(&c);
    c.params.key_starts = memory.starts;
    assert_refused(&c, ARGUMENT, "params.key_starts is given|must be NULL, caches have their own");
    c.params.key_starts = NULL;
    c.params.sequences = 1;
    assert_refused(&c, ARGUMENT, "k has 2 sequences|must be params.sequences, 1");
}

static void caches_must_hold_the_same_keys(void **state)
{
    static const int64_t other[S] = {0, 4}, one[S] = {0, 1};
    struct call c;
    (void)state;
    call_init(&c, PAGED);
    c.k.first_keys = other;
    assert_refused(&c, ARGUMENT, "v: the first key of sequence 1 is 0|must be that of k, 4");
    c.v.first_keys = one;
    assert_refused(&c, ARGUMENT, "v: the first key of sequence 1 is 1|must be that of k, 4");
    c.v.first_keys = other;
    assert_fine(&c);
    call_init(&c, RING);
    c.v.turns = other;
    assert_refused(&c, ARGUMENT, "v: the turn of sequence 1 is 4|must be that of k, 0");
    c.k.turns = other;
    assert_fine(&c);
}

static void counts_are_within_the_slots(void **state)
{
    const int64_t far = INT64_C(1) << 53;
    struct call c;
    (void)state;
    for (int32_t kind = PLAIN; kind <= PAGED; kind++) {
        call_init(&c, kind);
        const int64_t most = kind == PLAIN ? SLOTS : kind == RING ? far : SLOTS * SEQUENCE_PAGES;
        c.params.key_counts = memory.counts;
        memory.counts[0] = 0;
        memory.counts[1] = most;
        c.k.keep = c.v.keep = kind == RING; /* then a walk passes over 2^43 spans at once */
        assert_fine(&c);
        memory.counts[1] = most + 1;
        assert_refused(&c, ARGUMENT, "params.key_counts[1] is|must be 0..");
        memory.counts[1] = -1;
        assert_refused(&c, ARGUMENT, "params.key_counts[1] is -1|must be 0..");
        c.params.key_counts = NULL;
        if (kind == PLAIN)
            assert_fine(&c);
        else
            assert_refused(&c, ARGUMENT, "params.key_counts is NULL|slots are not the keys");
    }
    memory.counts[1] = 0;
}

/* Entries of keys in use are looked at in both tables; those of others may be anything. */
static void pages_of_seen_keys_must_exist(void **state)
{
    struct call c;
    (void)state;
    for (int n = 0; n < 2; n++) {
        call_init(&c, PAGED);
        int32_t *entry = (n ? memory.v_pages : memory.k_pages) + 3;
        *entry = PAGES;
        assert_refused(&c, POSENC_ERROR_POSITION,
                       n ? "v.pages: entry 1 of sequence 1 is 6|0..5"
                         : "k.pages: entry 1 of sequence 1 is 6|0..5");
        *entry = -1;
        assert_refused(&c, POSENC_ERROR_POSITION, "entry 1 of sequence 1 is -1");
        c.params.key_counts = memory.counts;
        memory.counts[0] = 2 * SLOTS;
        memory.counts[1] = SLOTS;
        assert_fine(&c);
        memory.counts[1] = SLOTS + 1;
        assert_refused(&c, POSENC_ERROR_POSITION, "entry 1 of sequence 1 is -1");
        c.params.align = POSENC_ALIGN_TOP_LEFT;
        c.params.causal = 1;
        assert_fine(&c);
    }
}

/* On both sides of what a window hides. */
static void pages_of_kept_keys_must_exist(void **state)
{
    struct call c;
    (void)state;
    call_init(&c, PAGED);
    c.params.keep = c.params.window_left = c.params.causal = 1;
    memory.k_pages[2] = 6;
    assert_refused(&c, POSENC_ERROR_POSITION, "k.pages: entry 0 of sequence 1 is 6|0..5");
    memory.k_pages[2] = 2;
    memory.k_pages[3] = 6;
    assert_refused(&c, POSENC_ERROR_POSITION, "k.pages: entry 1 of sequence 1 is 6|0..5");
    c.params.align = POSENC_ALIGN_TOP_LEFT;
    assert_fine(&c);
    c.params.keep = 0;
    c.params.align = POSENC_ALIGN_BOTTOM_RIGHT;
    memory.k_pages[2] = -1;
    memory.k_pages[3] = 3;
    memory.k_pages[0] = INT32_MAX;
    assert_fine(&c);
}

/* Each result in turn lies where something is read. */
static void results_share_no_memory_with_caches(void **state)
{
    static const struct {
        size_t at;
        const char *name;
    } read[] = {
        {offsetof(__typeof__(memory), k), "k"},
        {offsetof(__typeof__(memory), v), "v"},
        {offsetof(__typeof__(memory), firsts), "first_keys"},
        {offsetof(__typeof__(memory), turns), "turns"},
        {offsetof(__typeof__(memory), k_pages), "pages"},
        {offsetof(__typeof__(memory), v_pages), "pages"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++)
        for (int result = 0; result < 5; result++) {
            struct call c;
            call_init(&c, i == 3 ? RING : i == 2 ? PLAIN : PAGED);
            char *at = (char *)&memory + read[i].at;
            if (i == 2)
                c.k.first_keys = c.v.first_keys = memory.firsts;
            if (i == 3)
                c.k.turns = c.v.turns = memory.turns;
            c.params.weight_rows = memory.weight_rows;
            c.params.weights = &c.weights;
            c.params.lse = &c.lse;
            assert_fine(&c);
            memset(memory.firsts, 0, sizeof(memory.firsts));
            if (result == 0)
                c.out.data = at;
            else if (result == 1)
                c.lse.data = at;
            else if (result == 2)
                c.weights.data = at;
            else {
                c.params.lse = c.params.weights = NULL;
                c.params.weight_rows = NULL;
            }
            if (result == 3)
                c.state.data = at;
            if (result == 4) {
                c.params.workspace = at;
                c.params.workspace_size = 64;
            }
            posenc_error error = {0, ""};
            memcpy(&before, &memory, sizeof(memory));
            test_refused(attend(&c, result == 3, &error), POSENC_ERROR_OVERLAP, &error,
                         read[i].name);
            assert_memory_equal(&before, &memory, sizeof(memory));
        }
}

static void a_header_shares_no_memory_with_results(void **state)
{
    static union {
        posenc_cache_header header;
        float out[S * Q * H * E];
    } both;
    struct call c;
    (void)state;
    call_init(&c, PLAIN);
    assert_int_equal(posenc_cache_header_init(&both.header, &c.k, NULL, NULL), POSENC_OK);
    c.k.header = &both.header;
    assert_fine(&c);
    c.out.data = both.out;
    posenc_error error = {0, ""};
    test_refused(attend(&c, 0, &error), POSENC_ERROR_OVERLAP, &error, "out|header");
}

/* What a header may say of keys, by the rows that are given; and of values. */
static void headers_must_fit_the_rotation(void **state)
{
    posenc_rope_params params = test_params(POSENC_ADJACENT, D, D);
    params.base = 500;
    posenc_plan *other = test_plan(&params);
    struct call c;
    (void)state;
    call_init(&c, PLAIN);
    assert_int_equal(posenc_cache_header_init(&c.k_header, &c.k, plan, NULL), POSENC_OK);
    c.k.header = &c.k_header;
    assert_fine(&c);
    c.params.rope = other; /* q is rotated already: its plan is still compared, but in spans */
    posenc_error error = {0, ""};
    test_refused(attend(&c, 0, &error), ARGUMENT, &error, "k.header: its keys were rotated");
    test_ok(attend(&c, 1, &error), &error);
    c.params.rope = plan;
    c.params.query_rows = &c.query_rows;
    assert_fine(&c);
    c.params.rope = other;
    assert_refused(&c, ARGUMENT, "k.header: its keys were rotated with base|params.rope has 500");
    c.params.rope = plan;
    c.params.key_rows = &c.key_rows;
    assert_refused(&c, ARGUMENT, "k.header: its keys are rotated and params.key_rows is given");
    c.params.rotate_from = 2;
    assert_fine(&c);
    c.params.rope = other;
    assert_refused(&c, ARGUMENT, "k.header: its keys were rotated with base|params.rope has 500");
    assert_int_equal(posenc_cache_header_init(&c.k_header, &c.k, NULL, NULL), POSENC_OK);
    assert_fine(&c);
    c.params.rotate_from = 0;
    assert_fine(&c);
    c.params.key_rows = NULL;
    assert_refused(&c, ARGUMENT, "k.header: its rows are not rotated and params.rope is given");
    posenc_plan_free(other);
}

static void values_are_not_rotated(void **state)
{
    struct call c;
    (void)state;
    call_init(&c, PLAIN);
    posenc_tensor_contiguous(&c.v.rows, memory.v, POSENC_F32, S, SLOTS, HK, D);
    posenc_tensor_contiguous(&c.out, memory.out, POSENC_F32, S, Q, H, D);
    posenc_tensor_contiguous(&c.state, memory.state, POSENC_F32, S, Q, H, D + 17);
    assert_int_equal(posenc_cache_header_init(&c.v_header, &c.v, plan, NULL), POSENC_OK);
    c.v.header = &c.v_header;
    assert_refused(&c, ARGUMENT, "v.header: its rows are rotated|params.output_rows");
    c.params.rope = plan;
    c.params.output_rows = &c.query_rows;
    assert_fine(&c);
    c.params.output_rows = NULL;
    c.k.header = &c.v_header; /* of both: it speaks of keys */
    assert_fine(&c);
    c.k.header = NULL;
    c.v.rows.data = memory.k; /* latent attention */
    assert_fine(&c);
}

/* Callers that know less of the struct: what lies behind it is not read. */
static void older_params_are_read(void **state)
{
    struct call c;
    (void)state;
    for (int32_t kind = PLAIN; kind <= PAGED; kind++) {
        call_init(&c, kind);
        c.params.keep = -1;
        c.params.struct_size = offsetof(posenc_attention_params, keep);
        assert_fine(&c);
        memset((char *)&c.params + offsetof(posenc_attention_params, align), 0x7f,
               sizeof(c.params) - offsetof(posenc_attention_params, align));
        c.params.struct_size = offsetof(posenc_attention_params, align);
        if (kind == PLAIN) /* the first form had no key_counts */
            assert_fine(&c);
    }
}

static int make_plan(void **state)
{
    const posenc_rope_params params = test_params(POSENC_ADJACENT, D, D);
    (void)state;
    plan = test_plan(&params);
    return 0;
}

static int free_plan(void **state)
{
    (void)state;
    posenc_plan_free(plan);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_argument_is_refused),
        cmocka_unit_test(arrays_that_caches_have_are_refused),
        cmocka_unit_test(caches_must_hold_the_same_keys),
        cmocka_unit_test(counts_are_within_the_slots),
        cmocka_unit_test(pages_of_seen_keys_must_exist),
        cmocka_unit_test(pages_of_kept_keys_must_exist),
        cmocka_unit_test(results_share_no_memory_with_caches),
        cmocka_unit_test(a_header_shares_no_memory_with_results),
        cmocka_unit_test(headers_must_fit_the_rotation),
        cmocka_unit_test(values_are_not_rotated),
        cmocka_unit_test(older_params_are_read),
    };
    return cmocka_run_group_tests(tests, make_plan, free_plan);
}
