/* SPDX-License-Identifier: MIT */
/* Kept sinks and keys that are turned again whenever one before them goes, in a ring and in plain
 * memory, against the same in float64 (run_cache.py). */
#include "cache_sequence.h"
#include "support/numbers.h"
#include "support/test.h"

#include <math.h>

enum { SLOTS = 16 };

/* A cache of keys and one of values, whose oldest keys but `keep` go when all slots are in use. */
struct stream {
    int ring;
    int64_t keep, slots, tokens, count, turn;
    posenc_cache k, v;
    float k_data[SLOTS * HK * D], v_data[SLOTS * HK * D];
    double k_bound[SLOTS * HK * D]; /* by logical key */
};

static struct stream stream;

static void open_stream(const char *id, int ring)
{
    double numbers[3];
    memset(&stream, 0, sizeof(stream));
    assert_int_equal(test_numbers("cache_run.txt", id, "stream", numbers, 3), 3);
    stream.ring = ring;
    stream.keep = (int64_t)numbers[0];
    stream.slots = (int64_t)numbers[1];
    stream.tokens = (int64_t)numbers[2];
    posenc_cache_init(&stream.k);
    stream.k.kind = ring ? POSENC_CACHE_RING : POSENC_CACHE_CONTIGUOUS;
    stream.k.keep = ring ? stream.keep : 0;
    stream.k.turns = ring ? &stream.turn : NULL;
    posenc_tensor_contiguous(&stream.k.rows, stream.k_data, POSENC_F32, 1, stream.slots, HK, D);
    stream.v = stream.k;
    stream.v.rows.data = stream.v_data;
}

static void turn_back(int64_t first, int64_t count, int64_t by)
{
    posenc_error error = {0, ""};
    posenc_positions deltas;
    posenc_positions_start(&deltas, 0);
    deltas.kind = POSENC_POSITIONS_IDS;
    deltas.dtype = POSENC_I64;
    deltas.ids = &by;
    test_ok(posenc_cache_move(seq.k.plan, &deltas, &stream.k, 0, first, count, &error), &error);
}

/* The oldest key that is not kept goes; those behind it count and stand one lower. A turn adds 3
 * roundings and half of one for its row, by |a| + |b| <= 4. */
static void evict(int64_t by)
{
    const int64_t keep = stream.keep, left = stream.slots - keep - 1;
    posenc_error error = {0, ""};
    if (stream.ring) {
        stream.turn++;
    } else {
        const posenc_cache *caches[2] = {&stream.k, &stream.v};
        for (int i = 0; i < 2; i++)
            test_ok(posenc_cache_copy(caches[i], 0, keep + 1, NULL, caches[i], 0, keep, left,
                                      &error), &error);
    }
    turn_back(keep, left, by);
    memmove(stream.k_bound + keep * HK * D, stream.k_bound + (keep + 1) * HK * D,
            (size_t)(left * HK * D) * sizeof(double));
    for (int64_t i = keep * HK * D; i < (stream.slots - 1) * HK * D; i++)
        stream.k_bound[i] += 3.5 * 0x1p-24 * 4;
    stream.count--;
}

/* Token t of k or v as key `place`, rotated there if it is a key. */
static void store_token(const posenc_cache *cache, const posenc_tensor *from, int64_t t,
                        int64_t place, const struct cache_run *run)
{
    posenc_error error = {0, ""};
    posenc_append_params params;
    posenc_tensor src = sequence_part(from, t, 1), rows;
    posenc_append_params_init(&params);
    if (run)
        cache_run_tokens(run, place, 1, &params, &rows);
    params.start = place;
    test_ok(posenc_cache_append(&params, &src, cache, &error), &error);
}

static const float *key_of(const posenc_cache *cache, int64_t key)
{
    int64_t block, slot;
    assert_int_equal(posenc_cache_locate(cache, 0, key, &block, &slot, NULL), POSENC_OK);
    assert_int_equal(block, 0);
    return (const float *)cache->rows.data + slot * cache->rows.stride[1];
}

/* Keys and values in logical order, for the truth. */
static void gather(float *k, float *v)
{
    for (int64_t j = 0; j < stream.count; j++) {
        memcpy(k + j * HK * D, key_of(&stream.k, j), HK * D * sizeof(float));
        memcpy(v + j * HK * D, key_of(&stream.v, j), HK * D * sizeof(float));
    }
}

/* Decodes token t; returns its distance from what ran by its bound. */
static double decode(int64_t t, int64_t by)
{
    float k[SLOTS * HK * D], v[SLOTS * HK * D], turned[HQ * D];
    posenc_error error = {0, ""};
    posenc_cache plain;
    struct attention_call call = {.rope = NULL};
    posenc_tensor out = sequence_part(&seq.out_view, t, 1);
    if (stream.count == stream.slots)
        evict(by);
    const int64_t place = stream.count++;
    store_token(&stream.k, &seq.k.src, t, place, &seq.k);
    store_token(&stream.v, &seq.v_view, t, place, NULL);
    for (int64_t i = 0; i < HK * D; i++)
        stream.k_bound[place * HK * D + i] = seq.k.bound[t * HK * D + i];
    posenc_tensor_contiguous(&call.q, turned, POSENC_F32, 1, 1, HQ, D);
    posenc_cache_plain(&plain, &call.q);
    posenc_append_params params;
    posenc_tensor rows, src = sequence_part(&seq.q.src, t, 1);
    cache_run_tokens(&seq.q, place, 1, &params, &rows);
    params.start = 0;
    test_ok(posenc_cache_append(&params, &src, &plain, &error), &error);
    posenc_attention_params_init(&call.params);
    call.params.causal = 1;
    posenc_attention_params p = call.params;
    p.key_counts = &stream.count;
    test_ok(posenc_attention_cached(&p, &call.q, &stream.k, &stream.v, &out, &error), &error);
    gather(k, v);
    posenc_tensor_contiguous(&call.k, k, POSENC_F32, 1, stream.count, HK, D);
    posenc_tensor_contiguous(&call.v, v, POSENC_F32, 1, stream.count, HK, D);
    call.out = out;
    return sequence_ratio(&call, 0, t, out.data, stream.k_bound);
}

static double run_stream(const char *id, int ring, int64_t by)
{
    double worst = 0;
    open_stream(id, ring);
    for (int64_t t = 0; t < stream.tokens; t++)
        worst = fmax(worst, decode(t, by));
    return worst;
}

static const struct { const char *id; size_t count; } streams[] = {
    {"stream/plain", 20 * HQ * D}, {"stream/no-sinks", 14 * HQ * D}};

static void streams_are_met(void **state)
{
    static float first[OUT], k[2][SLOTS * HK * D], v[2][SLOTS * HK * D];
    double keys[SLOTS * HK * D];
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        sequence_load(streams[n].id, POSENC_RECIPE_EXACT, streams[n].count);
        for (int ring = 0; ring < 2; ring++) {
            double worst = run_stream(streams[n].id, ring, -1);
            if (!(worst <= 1))
                fail_msg("%s, ring %d: %g times the bound", streams[n].id, ring, worst);
            gather(k[ring], v[ring]);
            size_t stored = test_numbers("cache_run.txt", streams[n].id, "keys", keys,
                                         SLOTS * HK * D);
            assert_int_equal(stored, stream.slots * HK * D);
            for (size_t i = 0; i < stored; i++)
                if (!(fabs((double)k[ring][i] - keys[i]) <= stream.k_bound[i] + 2e-9))
                    fail_msg("%s: key %zu is %g and not %g", streams[n].id, i / (HK * D),
                             (double)k[ring][i], keys[i]);
            if (ring == 0)
                memcpy(first, seq.out, sizeof(first));
        }
        size_t bytes = (size_t)(stream.slots * HK * D) * sizeof(float);
        assert_memory_equal(first, seq.out, streams[n].count * sizeof(float));
        assert_memory_equal(k[0], k[1], bytes);
        assert_memory_equal(v[0], v[1], bytes);
        sequence_free();
    }
}

/* Keys that keep the place they were rotated for, or turn the wrong way, give other rows. */
static void turning_counts(void **state)
{
    (void)state;
    for (size_t n = 0; n < 2; n++)
        for (int64_t by = -2; by <= 1; by++) {
            sequence_load(streams[n].id, POSENC_RECIPE_EXACT, streams[n].count);
            if (by != -1 && run_stream(streams[n].id, 1, by) <= 1)
                fail_msg("%s: also met when keys turn by %d", streams[n].id, (int)by);
            sequence_free();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams_are_met),
                                       cmocka_unit_test(turning_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
