/* SPDX-License-Identifier: MIT */
/* Attention over caches of 40 tokens that come in pieces against transformers' own cache of sliding
 * layers (run_cache.py). */
#include "cache_sequence.h"
#include "support/numbers.h"
#include "support/test.h"

#include <math.h>

static int64_t window;

static posenc_attention_params params_of(const char *id)
{
    posenc_attention_params p;
    double numbers[3], sinks[HQ];
    posenc_attention_params_init(&p);
    test_numbers("cache_run.txt", id, "window", numbers, 3);
    window = (int64_t)numbers[0];
    p.causal = 1;
    p.window_left = window;
    p.scale = numbers[1];
    if (numbers[2] > 0) {
        test_numbers("cache_run.txt", id, "sinks", sinks, HQ);
        for (int h = 0; h < HQ; h++)
            seq.sinks[h] = (float)sinks[h];
        p.sinks = seq.sinks;
    }
    return p;
}

static double worst_of(const posenc_attention_params *params)
{
    struct attention_call call = {.params = *params, .q = seq.q_view, .k = seq.k_view,
                                  .v = seq.v_view, .out = seq.out_view};
    double worst = 0;
    for (int64_t i = 0; i < TOKENS; i++)
        worst = fmax(worst, sequence_ratio(&call, i, i, seq.out + i * HQ * D, seq.k.bound));
    return worst;
}

/* A cache of keys and one of values, and the arrays of their maps. */
struct store {
    posenc_cache k, v;
    float k_data[64 * HK * D], v_data[64 * HK * D];
    int64_t first, count;
    int32_t pages[16];
};

enum { CONTIGUOUS, RING, TIGHT_RING, PAGED, EVICTED, GEOMETRIES, PAGE = 3, POOL = 14 };

static struct store store;

static void open_store(int geometry, int64_t slots)
{
    int paged = geometry >= PAGED;
    memset(&store, 0x7b, sizeof(store));
    posenc_cache_init(&store.k);
    store.k.kind = paged ? POSENC_CACHE_PAGED
                         : geometry == CONTIGUOUS ? POSENC_CACHE_CONTIGUOUS : POSENC_CACHE_RING;
    posenc_tensor_contiguous(&store.k.rows, store.k_data, POSENC_F32, paged ? POOL : 1,
                             paged ? PAGE : slots, HK, D);
    store.first = 0;
    if (paged) {
        store.k.first_keys = &store.first;
        store.k.pages = store.pages;
        store.k.sequences = 1;
        store.k.sequence_pages = store.k.page_stride = POOL;
    }
    store.v = store.k;
    store.v.rows.data = store.v_data;
}

/* Pages in an order of their own; those whose keys no query sees any more serve again. */
static void evict(int geometry, int64_t at)
{
    int64_t unseen = at - window + 1;
    if (geometry == EVICTED && unseen > 0)
        store.first = unseen / PAGE * PAGE;
    for (int64_t n = 0; n < POOL; n++)
        store.pages[n] = (int32_t)((5 * (store.first / PAGE + n) + 2) % POOL);
}

/* Feeds `count` tokens and attends with their queries. */
static void step(int geometry, const posenc_attention_params *params, int64_t at, int64_t count)
{
    posenc_error error = {0, ""};
    posenc_append_params append, plain;
    posenc_tensor rows, src = cache_run_tokens(&seq.k, at, count, &append, &rows);
    posenc_tensor values = sequence_part(&seq.v_view, at, count);
    posenc_tensor q = sequence_part(&seq.q_view, at, count);
    posenc_tensor out = sequence_part(&seq.out_view, at, count);
    posenc_attention_params p = *params;
    evict(geometry, at);
    posenc_append_params_init(&plain);
    plain.start = at;
    test_ok(posenc_cache_append(&append, &src, &store.k, &error), &error);
    test_ok(posenc_cache_append(&plain, &values, &store.v, &error), &error);
    store.count = at + count - store.first;
    p.key_counts = &store.count;
    test_ok(posenc_attention_cached(&p, &q, &store.k, &store.v, &out, &error), &error);
}

static void feed(const char *id, int geometry, const posenc_attention_params *params)
{
    double chunks[TOKENS];
    size_t n = test_numbers("cache_run.txt", id, "chunks", chunks, TOKENS);
    int64_t at = 0, largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = (int64_t)fmax((double)largest, chunks[i]);
    open_store(geometry, geometry == CONTIGUOUS ? TOKENS
                         : geometry == RING ? window - 1 + largest : window);
    memset(seq.out, 0x7b, sizeof(seq.out));
    for (size_t i = 0; i < n; i++) {
        int64_t count = (int64_t)chunks[i], piece = geometry == TIGHT_RING ? 1 : count;
        for (int64_t done = 0; done < count; done += piece)
            step(geometry, params, at + done, piece);
        at += count;
    }
    assert_int_equal(at, TOKENS);
}

static const char *const names[] = {"window/mistral", "window/gemma3", "window/gpt-oss"};

static void sliding_layers_are_met(void **state)
{
    static float first[OUT];
    (void)state;
    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
        sequence_load(names[n], POSENC_RECIPE_HF_F32, OUT);
        posenc_attention_params params = params_of(names[n]);
        sequence_append(&seq.q, &seq.q_view);
        sequence_append(&seq.k, &seq.k_view);
        for (int geometry = 0; geometry < GEOMETRIES; geometry++) {
            feed(names[n], geometry, &params);
            double worst = worst_of(&params);
            if (!(worst <= 1))
                fail_msg("%s, geometry %d: %g times the bound", names[n], geometry, worst);
            if (geometry == 0)
                memcpy(first, seq.out, sizeof(first));
            assert_memory_equal(first, seq.out, sizeof(first));
        }
        sequence_free();
    }
}

/* A window, a scale or sinks that are not the model's do not meet it. */
static void window_options_count(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
        for (int wrong = 0; wrong < 5; wrong++) {
            sequence_load(names[n], POSENC_RECIPE_HF_F32, OUT);
            posenc_attention_params params = params_of(names[n]);
            params.window_left += wrong == 0 ? 1 : wrong == 1 ? -1 : 0;
            params.scale *= wrong == 2 ? 1.01 : 1;
            params.sinks = wrong == 3 ? NULL : params.sinks;
            if ((wrong == 2 && params.scale == 0) || (wrong == 3 && n != 2))
                params.causal = 0;
            sequence_append(&seq.q, &seq.q_view);
            sequence_append(&seq.k, &seq.k_view);
            if (wrong == 4) /* values as keys: the cache's content counts */
                memcpy(seq.k.src_data, seq.v, sizeof(seq.v));
            feed(names[n], CONTIGUOUS, &params);
            if (worst_of(&params) <= 1)
                fail_msg("%s: also met with fault %d", names[n], wrong);
            sequence_free();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sliding_layers_are_met),
                                       cmocka_unit_test(window_options_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
