/* SPDX-License-Identifier: MIT */
/* Random calls of attention over caches that hold the keys of a plain call. */
#include "attention_caches.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_support.h"
#include "support/half.h"
#include "support/test.h"

static int64_t pick(struct caches *c, int64_t low, int64_t high)
{
    return random_between(&c->seed, low, high);
}

/* Where a sequence of the plain call stands. */
struct stand {
    int64_t batch, first_token, tokens, first_stored, first, keys;
};

static struct stand stand_of(const struct caches *c, int64_t s)
{
    const struct attention_call *call = &c->o->call;
    const posenc_attention_params *p = &call->params;
    struct stand x = {s, 0, truth_queries(call, s), 0, p->first_key, call->k.shape[1]};
    if (p->sequences) {
        x.batch = 0;
        x.first_token = p->query_starts[s];
        x.first_stored = p->key_starts[s];
        x.keys = p->key_starts[s + 1] - x.first_stored;
    }
    if (p->key_counts)
        x.keys = p->key_counts[s];
    if (p->first_keys)
        x.first = p->first_keys[s];
    return x;
}

int64_t caches_index(const struct caches *c, int64_t sequence, int64_t key)
{
    int64_t slots = c->k.rows.shape[1], keep = c->k.keep;
    if (c->k.kind != POSENC_CACHE_RING)
        return key - c->firsts[sequence];
    if (key < keep)
        return key;
    int64_t slot = (c->turns[sequence] + key - keep) % (slots - keep);
    return keep + slot;
}

int caches_holds(const struct caches *c, int64_t sequence, int64_t key)
{
    int64_t keys = stand_of(c, sequence).keys, keep = c->k.keep;
    return c->k.kind != POSENC_CACHE_RING || key < keep || key >= keys - (c->capacity - keep);
}

static void *array_of(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);
    assert_non_null(memory);
    return memory;
}

static void fill_nan(posenc_tensor *t)
{
    for (int64_t n = tensor_count(t), i = 0; i < n; i++)
        test_store(t->data, t->dtype, i, NAN);
}

static char *head_of(const posenc_tensor *t, int64_t b, int64_t token, int64_t head)
{
    int64_t at = b * t->stride[0] + token * t->stride[1] + head * t->stride[2];
    return (char *)t->data + at * (int64_t)test_size(t->dtype);
}

/* All heads of a token; from NULL: NaN. */
static void put_token(const posenc_tensor *to, int64_t b, int64_t token, const posenc_tensor *from,
                      int64_t from_b, int64_t from_token)
{
    for (int64_t h = 0; h < to->shape[2]; h++)
        for (int64_t i = 0; !from && i < to->shape[3]; i++)
            test_store(head_of(to, b, token, h), to->dtype, i, NAN);
    for (int64_t h = 0; from && h < to->shape[2]; h++)
        memcpy(head_of(to, b, token, h), head_of(from, from_b, from_token, h),
               (size_t)to->shape[3] * test_size(to->dtype));
}

/* A table of pages none of which comes twice but the first, which sequences share if told so. */
static int32_t *make_pages(struct caches *c, int64_t pages)
{
    int64_t count = c->sequences * c->k.sequence_pages;
    int32_t *order = array_of(pages, sizeof(*order)), *table = array_of(count, sizeof(*table));
    for (int64_t i = 0; i < pages; i++)
        order[i] = (int32_t)i;
    for (int64_t i = pages - 1; i > 0; i--) {
        int64_t other = pick(c, 0, i);
        int32_t page = order[i];
        order[i] = order[other];
        order[other] = page;
    }
    for (int64_t s = 0; s < c->sequences; s++)
        for (int64_t n = 0; n < c->k.sequence_pages; n++) {
            int in_use = n * c->k.rows.shape[1] < stand_of(c, s).keys;
            int64_t i = s * c->k.sequence_pages + n;
            table[i] = in_use ? order[i] : n % 2 ? INT32_MAX : -1;
        }
    free(order);
    return table;
}

/* Sequences with a whole first page get that of sequence 0. */
static void share_prefix(struct caches *c)
{
    const posenc_tensor *plain[2] = {&c->o->call.k, &c->o->call.v};
    const struct stand from = stand_of(c, 0);
    int64_t slots = c->k.rows.shape[1];
    for (int64_t s = 1; s < c->sequences; s++) {
        const struct stand to = stand_of(c, s);
        if (from.keys < slots || to.keys < slots)
            continue;
        c->k_pages[s * c->k.sequence_pages] = c->k_pages[0];
        c->v_pages[s * c->k.sequence_pages] = c->v_pages[0];
        for (int64_t i = 0; i < slots; i++)
            for (int n = 0; n < 2; n++)
                put_token(plain[n], to.batch, to.first_stored + i, plain[n], from.batch,
                          from.first_stored + i);
    }
}

static void make_kind(struct caches *c, int32_t kind)
{
    static const int64_t page_slots[] = {1, 7, 16, 64, 100, 192};
    struct attention_call *call = &c->o->call;
    int64_t most = 1, slots, blocks = c->sequences;
    for (int64_t s = 0; s < c->sequences; s++)
        most = stand_of(c, s).keys > most ? stand_of(c, s).keys : most;
    posenc_cache_init(&c->k);
    c->k.kind = kind;
    c->capacity = slots = most + pick(c, 0, 4);
    if (kind == POSENC_CACHE_RING) {
        c->capacity = slots = pick(c, 0, 1) ? pick(c, 1, most + 9) : pick(c, 1, 20);
        int64_t most_kept = c->o->with & WITH_DECODING ? 150 : 8;
        c->k.keep = pick(c, 0, 2) ? pick(c, 0, slots <= most_kept ? slots - 1 : most_kept) : 0;
    } else if (kind == POSENC_CACHE_PAGED) {
        slots = page_slots[pick(c, 0, 5)];
        c->k.sequences = c->sequences;
        c->k.sequence_pages = c->k.page_stride = (most + slots - 1) / slots + pick(c, 0, 1);
        c->capacity = slots * c->k.sequence_pages;
        blocks = c->sequences * c->k.sequence_pages + pick(c, 0, 2);
    }
    c->v = c->k;
    options_tensor(c->o, &c->k.rows, call->k.dtype, blocks, slots, call->k.shape[2],
                   call->k.shape[3]);
    options_tensor(c->o, &c->v.rows, call->v.dtype, blocks, slots, call->v.shape[2],
                   call->v.shape[3]);
    fill_nan(&c->k.rows);
    fill_nan(&c->v.rows);
    if (kind == POSENC_CACHE_PAGED) {
        c->k.pages = c->k_pages = make_pages(c, blocks);
        c->v.pages = c->v_pages = make_pages(c, blocks);
        if (pick(c, 0, 1))
            share_prefix(c);
    }
}

/* first_keys, counts and turns from the plain call into the caches and the cached call. */
static void make_arrays(struct caches *c)
{
    int full = c->k.kind == POSENC_CACHE_CONTIGUOUS;
    c->firsts = array_of(c->sequences, sizeof(*c->firsts));
    c->counts = array_of(c->sequences, sizeof(*c->counts));
    c->turns = array_of(c->sequences, sizeof(*c->turns));
    for (int64_t s = 0; s < c->sequences; s++) {
        const struct stand x = stand_of(c, s);
        c->firsts[s] = x.first;
        c->counts[s] = x.keys;
        c->turns[s] = c->k.kind == POSENC_CACHE_RING ? pick(c, 0, 300) : 0;
        full &= x.keys == c->capacity;
    }
    if (c->k.kind == POSENC_CACHE_RING)
        c->k.turns = c->v.turns = c->turns;
    else if (c->o->call.params.first_keys)
        c->k.first_keys = c->v.first_keys = c->firsts;
    else {
        const posenc_attention_params *p = &c->params;
        const posenc_plan *plan = p->query_rows && !p->key_rows ? p->rope : NULL;
        assert_int_equal(posenc_cache_header_init(&c->header, &c->k, plan, NULL), POSENC_OK);
        c->header.first_key = c->o->call.params.first_key;
        c->k.header = &c->header;
        c->v.first_keys = c->firsts;
    }
    c->params.first_key = 0;
    c->params.first_keys = c->params.key_starts = NULL;
    c->params.key_counts = full ? NULL : c->counts;
}

/* Copies what is stored; the plain call hides the rest and has nothing there. */
static void fill_caches(struct caches *c)
{
    const struct attention_call *call = &c->o->call;
    int64_t slots = c->k.rows.shape[1];
    for (int64_t s = 0; s < c->sequences; s++) {
        const struct stand x = stand_of(c, s);
        for (int64_t i = 0; i < x.keys; i++) {
            int64_t at = caches_index(c, s, x.first + i), k_block = s, v_block = s, token = at;
            if (!caches_holds(c, s, x.first + i)) {
                put_token(&call->k, x.batch, x.first_stored + i, NULL, 0, 0);
                put_token(&call->v, x.batch, x.first_stored + i, NULL, 0, 0);
                continue;
            }
            if (c->k.kind == POSENC_CACHE_PAGED) {
                k_block = c->k_pages[s * c->k.page_stride + at / slots];
                v_block = c->v_pages[s * c->k.page_stride + at / slots];
                token = at % slots;
            }
            put_token(&c->k.rows, k_block, token, &call->k, x.batch, x.first_stored + i);
            put_token(&c->v.rows, v_block, token, &call->v, x.batch, x.first_stored + i);
        }
    }
}

/* The bias by slot; and that of the plain call with what is not stored hidden. */
static void make_bias(struct caches *c)
{
    struct attention_call *call = &c->o->call;
    const posenc_tensor *old = call->params.bias;
    const int64_t *q = call->q.shape;
    int32_t dtype = old ? old->dtype : POSENC_F32;
    if (!old && c->k.kind != POSENC_CACHE_RING)
        return;
    options_tensor(c->o, &c->plain_bias, dtype, q[0], q[1], q[2], call->k.shape[1]);
    options_tensor(c->o, &c->bias, dtype, q[0], q[1], q[2], c->capacity);
    fill_nan(&c->plain_bias);
    fill_nan(&c->bias);
    for (int64_t s = 0; s < c->sequences; s++) {
        const struct stand x = stand_of(c, s);
        for (int64_t n = 0; n < x.tokens * q[2] * x.keys; n++) {
            int64_t j = n % x.keys, h = n / x.keys % q[2], t = x.first_token + n / x.keys / q[2];
            int held = caches_holds(c, s, x.first + j);
            double value = old ? (double)truth_element(old, x.batch, t, h, j) : 0;
            test_store(head_of(&c->plain_bias, x.batch, t, h), dtype, j, held ? value : -INFINITY);
            if (held)
                test_store(head_of(&c->bias, x.batch, t, h), dtype,
                           caches_index(c, s, x.first + j), value);
        }
    }
    call->params.bias = &c->plain_bias;
    if (old)
        c->params.bias = &c->bias;
}

/* Rows by slot, from rotate_from on; in a ring that names other keys, so that the plain call turns
 * all of them, those by nothing. */
static void make_rows(struct caches *c)
{
    struct attention_call *call = &c->o->call;
    const posenc_tensor *old = call->params.key_rows;
    int ring = c->k.kind == POSENC_CACHE_RING;
    if (!old)
        return;
    int64_t from = call->params.rotate_from, pairs = old->shape[3] / 2;
    from = from < c->capacity ? from : c->capacity;
    options_tensor(c->o, &c->plain_rows, POSENC_F32, call->q.shape[0], old->shape[1], 1, 2 * pairs);
    options_tensor(c->o, &c->key_rows, POSENC_F32, c->sequences, c->capacity, 1, 2 * pairs);
    fill_nan(&c->key_rows);
    for (int64_t s = 0; s < c->sequences; s++) {
        const struct stand x = stand_of(c, s);
        for (int64_t i = 0; i < x.keys; i++) {
            int64_t token = x.first_stored + i, at = caches_index(c, s, x.first + i);
            float *row = (float *)(void *)head_of(&c->plain_rows, x.batch, token, 0);
            put_token(&c->plain_rows, x.batch, token, old, old->shape[0] > 1 ? x.batch : 0, token);
            if (caches_holds(c, s, x.first + i))
                put_token(&c->key_rows, s, at, &c->plain_rows, x.batch, token);
            for (int64_t n = 0; ring && at < from && n < 2 * pairs; n++)
                row[n] = n < pairs;
        }
    }
    call->params.key_rows = &c->plain_rows;
    if (ring)
        call->params.rotate_from = 0;
    c->params.key_rows = &c->key_rows;
    c->params.rotate_from = from;
}

static void make_positions(struct caches *c)
{
    const posenc_alibi_params *old = c->o->call.params.alibi;
    if (!old || !old->key_positions)
        return;
    c->positions = array_of(c->sequences * c->capacity, sizeof(*c->positions));
    for (int64_t s = 0; s < c->sequences; s++) {
        const struct stand x = stand_of(c, s);
        const int64_t *from = old->key_positions + x.batch * c->o->call.k.shape[1];
        for (int64_t i = 0; i < x.keys; i++)
            if (caches_holds(c, s, x.first + i))
                c->positions[s * c->capacity + caches_index(c, s, x.first + i)] = from[i];
    }
    c->alibi = *old;
    c->alibi.key_positions = c->positions;
    c->params.alibi = &c->alibi;
}

void caches_init(struct caches *c, struct options *o, int32_t kind, uint64_t seed)
{
    posenc_attention_params *p = &o->call.params;
    const int64_t *w = o->weights.shape;
    *c = (struct caches){.o = o, .seed = seed, .sequences = truth_sequences(&o->call)};
    if (kind == POSENC_CACHE_RING) {
        p->first_key = 0;
        p->first_keys = NULL;
    }
    make_kind(c, kind);
    if (kind == POSENC_CACHE_RING)
        p->keep = c->k.keep;
    c->params = *p;
    make_arrays(c);
    fill_caches(c);
    make_bias(c);
    make_rows(c);
    make_positions(c);
    if (kind == POSENC_CACHE_RING && pick(c, 0, 1))
        c->params.keep = 0;
    options_tensor(o, &c->weights, POSENC_F32, w[0], w[1], w[2], c->capacity);
    if (p->weights)
        c->params.weights = &c->weights;
}

void caches_free(struct caches *c)
{
    void *const memory[] = {c->firsts, c->turns, c->counts, c->positions, c->k_pages, c->v_pages};
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
        free(memory[i]);
}

static const float *row_of(const posenc_tensor *t, int64_t b, int64_t token, int64_t head)
{
    return (const float *)(const void *)head_of(t, b, token, head);
}

/* The weights by slot are those by key, and 0 in every other slot. */
static void compare_weights(const struct caches *c, const char *text)
{
    const struct options *o = c->o;
    const posenc_attention_params *p = &c->params;
    float *expected = array_of(c->capacity, sizeof(*expected));
    for (int64_t s = 0; p->weights && s < c->sequences; s++) {
        const struct stand x = stand_of(c, s);
        for (int64_t i = 0; i < o->weights.shape[1] * o->weights.shape[2]; i++) {
            int64_t n = i / o->weights.shape[2], h = i % o->weights.shape[2];
            int64_t token = p->weight_rows[n] - x.first_token;
            if (token < 0 || token >= x.tokens)
                continue;
            memset(expected, 0, (size_t)c->capacity * sizeof(*expected));
            for (int64_t j = 0; j < x.keys; j++)
                if (caches_holds(c, s, x.first + j))
                    expected[caches_index(c, s, x.first + j)] =
                        row_of(&o->weights, x.batch, n, h)[j];
            if (memcmp(expected, row_of(&c->weights, x.batch, n, h),
                       (size_t)c->capacity * sizeof(*expected)) != 0)
                fail_msg("%s: other weights, sequence %lld", text, (long long)s);
        }
    }
    free(expected);
}

static void clear_results(struct caches *c)
{
    const struct options *o = c->o;
    const posenc_tensor *t[3] = {&o->call.out, &o->lse, &c->weights};
    for (int i = 0; i < 3; i++)
        memset(t[i]->data, FILL_BYTE, (size_t)tensor_count(t[i]) * test_size(t[i]->dtype));
}

static void run_whole(struct caches *c, const char *text)
{
    const struct attention_call *call = &c->o->call;
    posenc_error error = {0, ""};
    if (posenc_attention_cached(&c->params, &call->q, &c->k, &c->v, &call->out, &error))
        fail_msg("%s: %s", text, error.text);
}

static void run_by_spans(struct caches *c, int64_t step, const char *text)
{
    const struct attention_call *call = &c->o->call;
    posenc_attention_params sums = c->params;
    posenc_error error = {0, ""};
    posenc_tensor state;
    int64_t first = INT64_MAX, last = 0, one = call->v.shape[3] + 17;
    for (int64_t s = 0; s < c->sequences; s++) {
        const struct stand x = stand_of(c, s);
        int64_t end = (x.first + x.keys) / POSENC_ATTENTION_SPAN + 1;
        first = x.first / POSENC_ATTENTION_SPAN < first ? x.first / POSENC_ATTENTION_SPAN : first;
        last = end > last ? end : last;
    }
    options_tensor(c->o, &state, POSENC_F32, call->out.shape[0], call->out.shape[1],
                   call->out.shape[2], (last - first) * one);
    sums.lse = sums.output_rows = NULL;
    for (int64_t s = first; s < last; s += step) {
        posenc_tensor part = state;
        part.data = (float *)state.data + (s - first) * one;
        part.shape[3] = (last - s < step ? last - s : step) * one;
        if (posenc_attention_cached_spans(&sums, &call->q, &c->k, &c->v, s, &part, &error))
            fail_msg("%s: %s", text, error.text);
    }
    test_ok(posenc_attention_join(&c->params, &state, &call->out, &error), &error);
}

void caches_compare(struct caches *c, int32_t isa, int64_t step, const char *text)
{
    const size_t bytes = options_result_bytes(c->o);
    const size_t same = bytes - (size_t)tensor_count(&c->o->weights) * sizeof(float);
    char *expected = malloc(2 * bytes), *result = expected + bytes;
    assert_non_null(expected);
    c->params.isa = isa;
    options_run(c->o, isa);
    options_results(c->o, expected);
    clear_results(c);
    if (step)
        run_by_spans(c, step, text);
    else
        run_whole(c, text);
    options_results(c->o, result);
    if (memcmp(expected, result, same) != 0)
        fail_msg("%s: other bits than in plain memory", text);
    compare_weights(c, text);
    free(expected);
}
