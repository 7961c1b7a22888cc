/* SPDX-License-Identifier: MIT */
/* Cases from public bug reports on positions, on caches: K04 and K05. */
#include "support/cases.h"
#include "support/half.h"

#include <stdio.h>

enum { MOST = 256 };

static void ids(posenc_positions *positions, const void *from, int32_t dtype, int64_t stride)
{
    posenc_positions_start(positions, 0);
    positions->kind = POSENC_POSITIONS_IDS;
    positions->dtype = dtype;
    positions->ids = from;
    positions->stride[1] = stride;
}

/* Rows of `tokens` positions from `start` on. */
static posenc_tensor rows_from(const posenc_plan *plan, float *data, int64_t tokens, int64_t start)
{
    posenc_positions positions;
    posenc_tensor rows;
    posenc_positions_start(&positions, start);
    posenc_tensor_contiguous(&rows, data, POSENC_F32, 1, tokens, 1,
                             2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, &positions, &rows, NULL), NULL);
    return rows;
}

/* Appends x[tokens][1][channels] from key `start` on, turned by the positions from `place` on. */
static int32_t append(const posenc_plan *plan, const posenc_cache *cache, float *x, int64_t tokens,
                      int64_t start, int64_t place, posenc_error *error)
{
    float row_data[MOST];
    posenc_append_params params;
    posenc_tensor src, rows = rows_from(plan, row_data, tokens, place);
    posenc_append_params_init(&params);
    params.isa = posenc_plan_isa(plan);
    params.start = start;
    params.rope = plan;
    params.rows = &rows;
    posenc_tensor_contiguous(&src, x, POSENC_F32, 1, tokens, 1, cache->rows.shape[3]);
    return posenc_cache_append(&params, &src, cache, error);
}

static void plain_cache(posenc_cache *cache, void *data, int32_t dtype, int64_t slots,
                        int64_t channels)
{
    posenc_tensor rows;
    posenc_tensor_contiguous(&rows, data, dtype, 1, slots, 1, channels);
    posenc_cache_plain(cache, &rows);
}

static void move(const posenc_plan *plan, const posenc_cache *cache, const void *deltas,
                 int32_t dtype, int64_t count)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    ids(&positions, deltas, dtype, 1);
    test_ok(posenc_cache_move(plan, &positions, cache, 0, 0, count, &error), &error);
}

/* Heads of (1, 0) pairs: what is stored is the row itself. */
static void ones(float *x, int tokens)
{
    for (int i = 0; i < 4 * tokens; i++)
        x[i] = i % 4 < 2 ? 1 : 0;
}

static void check_row(const char *id, const char *name, const float *row)
{
    char full[64];
    snprintf(full, sizeof(full), "expected.%s.cos", name);
    case_check(id, full, row, 1e-6);
    snprintf(full, sizeof(full), "expected.%s.sin", name);
    case_check(id, full, row + 2, 1e-6);
}

/* B10-a: equal lengths at two offsets, into one cache. */
static void offsets(int32_t isa)
{
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 4, 4, isa);
    float x[16], stored[14 * 4];
    posenc_error error = {0, ""};
    posenc_cache cache;
    char name[32];
    ones(x, 4);
    plain_cache(&cache, stored, POSENC_F32, 14, 4);
    test_ok(append(plan, &cache, x, 4, 0, 0, &error), &error);
    test_ok(append(plan, &cache, x, 4, 10, 10, &error), &error);
    for (int call = 1; call <= 2; call++)
        for (int t = 0; t < 4; t++) {
            snprintf(name, sizeof(name), "call_%d.%d", call, t);
            check_row("B10-a", name, stored + 4 * (t + (call == 1 ? 0 : 10)));
        }
    posenc_plan_free(plan);
}

/* B11-a: two layers, each with keys and a header; layer 1 reads what layer 0 gave. */
enum { LAYERS = 2, PIECES = 4, TOKENS = 11, SLOTS = 24, WIDTH = 4 };

struct decoder {
    float keys[LAYERS][SLOTS * WIDTH], out[LAYERS][TOKENS * WIDTH];
    posenc_cache_header headers[LAYERS];
    posenc_cache caches[LAYERS];
};

static void decoder_init(struct decoder *d, const posenc_plan *plan)
{
    posenc_error error = {0, ""};
    memset(d, 0, sizeof(*d));
    for (int layer = 0; layer < LAYERS; layer++) {
        plain_cache(&d->caches[layer], d->keys[layer], POSENC_F32, SLOTS, WIDTH);
        test_ok(posenc_cache_header_init(&d->headers[layer], &d->caches[layer], plan, &error),
                &error);
        d->caches[layer].header = &d->headers[layer];
    }
}

/* One piece through a layer, its first token at `start`: keys, and values that are the keys. */
static void decoder_layer(struct decoder *d, int layer, const posenc_plan *plan, float *in,
                          int64_t at, int64_t count, int64_t start)
{
    float row_data[MOST];
    posenc_error error = {0, ""};
    posenc_attention_params params;
    posenc_tensor q, out, rows = rows_from(plan, row_data, count, start);
    const int64_t keys = start + count;
    test_ok(append(plan, &d->caches[layer], in, count, start, start, &error), &error);
    posenc_tensor_contiguous(&q, in, POSENC_F32, 1, count, 1, WIDTH);
    posenc_tensor_contiguous(&out, d->out[layer] + at * WIDTH, POSENC_F32, 1, count, 1, WIDTH);
    posenc_attention_params_init(&params);
    params.isa = posenc_plan_isa(plan);
    params.causal = 1;
    params.key_counts = &keys;
    params.rope = plan;
    params.query_rows = &rows;
    test_ok(posenc_attention_cached(&params, &q, &d->caches[layer], &d->caches[layer], &out,
                                    &error), &error);
}

static void decode(struct decoder *d, const posenc_plan *plan, int pieces, const double *lengths,
                   const double *upper_starts)
{
    float x[TOKENS * WIDTH];
    int64_t at = 0;
    case_pattern(x, TOKENS * WIDTH);
    decoder_init(d, plan);
    for (int n = 0; n < pieces; n++) {
        const int64_t count = (int64_t)lengths[n];
        for (int layer = 0; layer < LAYERS; layer++)
            decoder_layer(d, layer, plan, (layer ? d->out[0] : x) + at * WIDTH, at, count,
                          layer && upper_starts ? (int64_t)upper_starts[n] : at);
        at += count; /* when every layer has read it */
    }
    assert_int_equal(at, TOKENS);
}

static void pieces(int32_t isa)
{
    static struct decoder whole, fed;
    static const double wrong[2][PIECES] = {{6, 7, 8, 11}, {0, 6, 12, 13}}, all[1] = {TOKENS};
    double lengths[PIECES], starts[PIECES], at = 0;
    float x[TOKENS * 4], stored[TOKENS * 4];
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 4, 4, isa);
    posenc_cache cache;
    test_numbers("cases.txt", "B11-a", "input.piece_lengths", lengths, PIECES);
    test_numbers("cases.txt", "B11-a", "expected.start_positions_for_every_layer", starts, PIECES);
    ones(x, TOKENS);
    plain_cache(&cache, stored, POSENC_F32, TOKENS, 4);
    for (int n = 0; n < PIECES; n++) {
        int64_t first = (int64_t)starts[n];
        assert_true(starts[n] == at);
        test_ok(append(plan, &cache, x + first * 4, (int64_t)lengths[n], first, first, NULL), NULL);
        at += lengths[n];
    }
    check_row("B11-a", "row_for_position_6", stored + 24);
    check_row("B11-a", "row_for_position_10", stored + 40);
    decode(&whole, plan, 1, all, NULL);
    decode(&fed, plan, PIECES, lengths, NULL);
    assert_memory_equal(whole.keys, fed.keys, sizeof(fed.keys));
    assert_memory_equal(whole.out, fed.out, sizeof(fed.out));
    for (int n = 0; n < 2; n++) {
        decode(&fed, plan, PIECES, lengths, wrong[n]);
        assert_memory_not_equal(whole.keys[1], fed.keys[1], sizeof(fed.keys[1]));
        assert_memory_not_equal(whole.out[1], fed.out[1], sizeof(fed.out[1]));
    }
    posenc_plan_free(plan);
}

/* B12-b on cached keys: a shift of 0 leaves the bytes, also beside keys that move; a shift back
 * gives x; successive shifts are their sum. */
static void shifts(int32_t isa)
{
    static const int64_t still[3] = {0, 0, 0}, some[3] = {0, -9, 0}, steps[3][3] = {
        {-2, -2, -2}, {-12, -12, -12}, {5, 5, 5}}; /* to position 0 from 9 */
    for (int32_t layout = POSENC_ADJACENT; layout <= POSENC_SPLIT_HALF; layout++)
        for (int32_t dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++) {
            posenc_plan *plan = case_plan(layout, 8, 8, isa);
            float x[24], rounding = dtype == POSENC_F32 ? 0 : dtype == POSENC_F16 ? 2e-3f : 2e-2f;
            unsigned char stored[96], before[96];
            const size_t row = 8 * test_size(dtype);
            posenc_cache cache;
            for (int t = 0; t < 3; t++)
                case_floats("B12-b", "input.x", x + 8 * t, 8);
            plain_cache(&cache, stored, dtype, 3, 8);
            for (int t = 0; t < 3; t++) /* each at position 9 */
                test_ok(append(plan, &cache, x + 8 * t, 1, t, 9, NULL), NULL);
            memcpy(before, stored, sizeof(before));
            move(plan, &cache, still, POSENC_I64, 3);
            assert_memory_equal(stored, before, 3 * row);
            move(plan, &cache, some, POSENC_I64, 3);
            assert_memory_equal(stored, before, row);
            assert_memory_equal(stored + 2 * row, before + 2 * row, row);
            assert_memory_not_equal(stored + row, before + row, row);
            memcpy(stored + row, before + row, row);
            for (int step = 0; step < 3; step++)
                move(plan, &cache, steps[step], POSENC_I64, 3);
            for (int i = 0; i < 24; i++) {
                double got = test_load(stored, dtype, i);
                if (!(fabs(got - (double)x[i]) <= 1e-6 + 3 * (double)rounding))
                    fail_msg("B12-b: %g instead of %g", got, (double)x[i]);
            }
            posenc_plan_free(plan);
        }
}

/* B13-a: a left-padded batch. Padding gets no key; real tokens get the keys and the rows that they
 * have without padding, and so does the next token. */
enum { PADDED = 5, BATCH = 2, ROOM = 8, CHANNELS = 8 };

static void append_padded(const posenc_plan *plan, const posenc_cache *cache, float *x,
                          int64_t (*keys)[PADDED], int64_t tokens)
{
    float row_data[BATCH * PADDED * CHANNELS];
    posenc_error error = {0, ""};
    posenc_append_params params;
    posenc_positions positions;
    posenc_tensor src, rows;
    ids(&positions, keys, POSENC_I64, 1);
    positions.stride[0] = PADDED;
    posenc_tensor_contiguous(&rows, row_data, POSENC_F32, BATCH, tokens, 1, CHANNELS);
    posenc_tensor_contiguous(&src, x, POSENC_F32, BATCH, tokens, 1, CHANNELS);
    test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
    posenc_append_params_init(&params);
    params.isa = posenc_plan_isa(plan);
    params.keys = keys[0];
    params.key_stride[0] = PADDED;
    params.key_stride[1] = 1;
    params.rope = plan;
    params.rows = &rows;
    test_ok(posenc_cache_append(&params, &src, cache, &error), &error);
}

static void padding(int32_t isa)
{
    static const unsigned char empty[ROOM * CHANNELS * sizeof(float)];
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, CHANNELS, CHANNELS, isa);
    int64_t keys[BATCH][PADDED], next[BATCH][PADDED];
    float x[BATCH * PADDED * CHANNELS], last[BATCH * CHANNELS];
    float stored[BATCH][ROOM][CHANNELS], alone[ROOM][CHANNELS];
    double mask[PADDED], real[PADDED], after[BATCH];
    posenc_tensor rows;
    posenc_cache cache, single;
    char name[64];
    case_pattern(x, BATCH * PADDED * CHANNELS);
    case_pattern(last, BATCH * CHANNELS);
    assert_int_equal(test_numbers("cases.txt", "B13-a", "expected.next_position_per_row", after,
                                  BATCH), BATCH);
    for (int b = 0; b < BATCH; b++) {
        snprintf(name, sizeof(name), "input.mask.%d", b);
        assert_int_equal(test_numbers("cases.txt", "B13-a", name, mask, PADDED), PADDED);
        int64_t ones_so_far = 0;
        for (int t = 0; t < PADDED; t++)
            keys[b][t] = mask[t] > 0 ? ones_so_far++ : -1;
        next[b][0] = ones_so_far;
        assert_true((double)ones_so_far == after[b]);
    }
    memset(stored, 0, sizeof(stored));
    posenc_tensor_contiguous(&rows, stored, POSENC_F32, BATCH, ROOM, 1, CHANNELS);
    posenc_cache_plain(&cache, &rows);
    append_padded(plan, &cache, x, keys, PADDED);
    append_padded(plan, &cache, last, next, 1);
    for (int b = 0; b < BATCH; b++) {
        snprintf(name, sizeof(name), "expected.positions_of_real_tokens.%d", b);
        int64_t n = (int64_t)test_numbers("cases.txt", "B13-a", name, real, PADDED);
        plain_cache(&single, alone, POSENC_F32, ROOM, CHANNELS);
        memset(alone, 0, sizeof(alone));
        for (int64_t i = 0; i < n; i++) {
            int64_t from = b * PADDED + PADDED - n + i, place = (int64_t)real[i];
            test_ok(append(plan, &single, x + from * CHANNELS, 1, place, place, NULL), NULL);
        }
        test_ok(append(plan, &single, last + b * CHANNELS, 1, n, n, NULL), NULL);
        assert_memory_equal(stored[b], alone, sizeof(alone));
        assert_memory_equal(stored[b][n + 1], empty, (size_t)(ROOM - n - 1) * sizeof(*alone));
    }
    posenc_plan_free(plan);
}

/* B13-b: a negative position turns back, as a key's place and as a delta. */
static void negative(int32_t isa)
{
    static const int32_t back[1] = {-2};
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 8, 8, isa);
    float x[8], stored[8];
    posenc_cache cache;
    case_floats("B13-b", "input.x", x, 8);
    plain_cache(&cache, stored, POSENC_F32, 1, 8);
    test_ok(append(plan, &cache, x, 1, 0, -2, NULL), NULL);
    case_check("B13-b", "expected", stored, 2e-6);
    test_ok(append(plan, &cache, x, 1, 0, 0, NULL), NULL);
    move(plan, &cache, back, POSENC_I32, 1);
    case_check("B13-b", "expected", stored, 2e-6);
    posenc_plan_free(plan);
}

/* B14-a: the tries as keys of a cache of 8 slots. A negative key is padding; one beyond the slots
 * is refused before anything is written. */
static void keys_out_of_range(int32_t isa)
{
    for (int n = 0; n < 5; n++) {
        float x[8], stored[8 * 4], before[8 * 4];
        double tries[2];
        char name[32];
        int64_t keys[2] = {-1, -1};
        posenc_error error = {0, ""};
        posenc_append_params params;
        posenc_tensor src;
        posenc_cache cache;
        snprintf(name, sizeof(name), "input.tries.%d", n);
        size_t count = test_numbers("cases.txt", "B14-a", name, tries, 2);
        int refused = 0;
        for (size_t i = 0; i < count; i++) {
            keys[i] = (int64_t)tries[i];
            refused |= keys[i] >= 8;
        }
        case_pattern(x, 8);
        memset(stored, 0x55, sizeof(stored));
        memcpy(before, stored, sizeof(before));
        plain_cache(&cache, stored, POSENC_F32, 8, 4);
        posenc_append_params_init(&params);
        params.isa = isa;
        params.keys = keys;
        params.key_stride[1] = 1;
        posenc_tensor_contiguous(&src, x, POSENC_F32, 1, (int64_t)count, 1, 4);
        int32_t status = posenc_cache_append(&params, &src, &cache, &error);
        for (size_t i = 0; i < count && !refused; i++)
            if (keys[i] >= 0)
                memcpy(before + 4 * keys[i], x + 4 * i, 4 * sizeof(float));
        if (refused)
            test_refused(status, POSENC_ERROR_POSITION, &error, "keys|0..7");
        else
            test_ok(status, &error);
        assert_memory_equal(stored, before, sizeof(before));
    }
}

/* B14-a again: keys re-based to places of a table of 8 rows. */
static void places_out_of_table(int32_t isa)
{
    static float cosine[16], sine[16];
    posenc_rope_params table = test_params(POSENC_SPLIT_HALF, 4, 4);
    for (int i = 0; i < 16; i++)
        cosine[i] = sine[i] = 0.5f;
    table.isa = isa;
    table.cos_table = cosine;
    table.sin_table = sine;
    table.cos_rows = table.sin_rows = 8;
    posenc_plan *plan = test_plan(&table);
    for (int n = 0; n < 5; n++) {
        float stored[8], before[8];
        double tries[2];
        int64_t places[2];
        char name[32];
        posenc_error error = {0, ""};
        posenc_positions from, to;
        posenc_cache cache;
        snprintf(name, sizeof(name), "input.tries.%d", n);
        size_t count = test_numbers("cases.txt", "B14-a", name, tries, 2);
        for (size_t i = 0; i < count; i++)
            places[i] = (int64_t)tries[i];
        case_pattern(stored, 8);
        memcpy(before, stored, sizeof(before));
        plain_cache(&cache, stored, POSENC_F32, 2, 4);
        posenc_positions_start(&from, 0);
        ids(&to, places, POSENC_I64, 1);
        int32_t status = posenc_cache_rebase(plan, &from, plan, &to, &cache, 0, 0, (int64_t)count,
                                             &error);
        if (n == 0) { /* the rows are the same, so their quotient turns nothing */
            test_ok(status, &error);
        } else {
            test_refused(status, POSENC_ERROR_POSITION, &error, "table");
            assert_memory_equal(stored, before, sizeof(before));
        }
    }
    posenc_plan_free(plan);
}

/* B14-b: deltas of 32 and of 64 bits are the same deltas. */
static void delta_widths(int32_t isa)
{
    static const int32_t narrow[4] = {1, 2, 3, 4};
    static const int64_t wide[4] = {1, 2, 3, 4};
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 4, 4, isa);
    float stored[2][16];
    posenc_cache cache;
    for (int w = 0; w < 2; w++) {
        ones(stored[w], 4);
        plain_cache(&cache, stored[w], POSENC_F32, 4, 4);
        move(plan, &cache, w ? (const void *)wide : narrow, w ? POSENC_I64 : POSENC_I32, 4);
        check_row("B14-b", "row_for_2", stored[w] + 4);
    }
    assert_memory_equal(stored[0], stored[1], sizeof(stored[0]));
    posenc_plan_free(plan);
}

/* B15-b: position 4096 has its row, but a cache of 4096 slots has no key 4096; a ring has. */
static void beyond_the_slots(int32_t isa)
{
    static float stored[4096 * 2], before[4096 * 2];
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 2, 2, isa);
    const int64_t position = (int64_t)case_number("B15-b", "input.position");
    float x[2] = {1, 0}, row[2];
    posenc_error error = {0, ""};
    posenc_cache cache;
    memset(stored, 0, sizeof(stored));
    plain_cache(&cache, stored, POSENC_F32, (int64_t)case_number("B15-b", "parameters.table_rows"),
                2);
    test_refused(append(plan, &cache, x, 1, position, position, &error), POSENC_ERROR_POSITION,
                 &error, "4096|0..4095");
    assert_memory_equal(stored, before, sizeof(stored));
    cache.kind = POSENC_CACHE_RING;
    test_ok(append(plan, &cache, x, 1, position, position, &error), &error);
    case_row(plan, position, row);
    assert_memory_equal(stored, row, sizeof(row));
    assert_memory_equal(stored + 2, before + 2, sizeof(stored) - sizeof(row));
    posenc_plan_free(plan);
}

static void b10_offsets(void **state) { (void)state; case_each_isa(offsets); }
static void b11_pieces(void **state) { (void)state; case_each_isa(pieces); }
static void b12_shifts(void **state) { (void)state; case_each_isa(shifts); }
static void b13_padding(void **state) { (void)state; case_each_isa(padding); }
static void b13_negative(void **state) { (void)state; case_each_isa(negative); }
static void b14_keys(void **state) { (void)state; case_each_isa(keys_out_of_range); }
static void b14_tables(void **state) { (void)state; case_each_isa(places_out_of_table); }
static void b14_widths(void **state) { (void)state; case_each_isa(delta_widths); }
static void b15_slots(void **state) { (void)state; case_each_isa(beyond_the_slots); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b10_offsets),  cmocka_unit_test(b11_pieces),
        cmocka_unit_test(b12_shifts),   cmocka_unit_test(b13_padding),
        cmocka_unit_test(b13_negative), cmocka_unit_test(b14_keys),
        cmocka_unit_test(b14_tables),   cmocka_unit_test(b14_widths),
        cmocka_unit_test(b15_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
