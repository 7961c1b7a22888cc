/* SPDX-License-Identifier: MIT */
/* Cached keys turned from one frequency set to another: bits, truth, switches, refusals. */
#include "cache_schemes.h"
#include "cache_store.h"
#include "support/half.h"
#include "support/truth.h"

#include <math.h>

enum { KEYS = 100 };

/* Positions of a call and the plan that they are for. */
struct side {
    posenc_plan *plan;
    posenc_positions positions;
    int64_t ids[SCHEME_AXES * STORE_SEQUENCES * KEYS];
    int32_t sets[STORE_SEQUENCES * KEYS];
};

static void any_side(struct side *s, posenc_rope_params p, enum scheme scheme,
                     struct test_random *random)
{
    static const int64_t lengths[4] = {100, SCHEME_TRAINED, SCHEME_TRAINED + 1, SCHEME_LENGTH};
    p.max_position = 0;
    s->plan = scheme_plan(p, scheme, random);
    posenc_positions_start(&s->positions, test_below(random, 5000));
    s->positions.length = lengths[test_below(random, 4)];
    if (p.axes > 1 || test_below(random, 3) == 0) {
        s->positions.kind = POSENC_POSITIONS_IDS;
        s->positions.dtype = POSENC_I64;
        s->positions.ids = s->ids;
        s->positions.axes = p.axes;
        s->positions.axis_stride = STORE_SEQUENCES * KEYS;
        s->positions.stride[0] = KEYS;
        s->positions.stride[1] = 1;
    }
    if (scheme_has_sets(scheme)) {
        s->positions.sets = s->sets;
        s->positions.set_stride[0] = KEYS;
        s->positions.set_stride[1] = 1;
    }
    for (int i = 0; i < SCHEME_AXES * STORE_SEQUENCES * KEYS; i++)
        s->ids[i] = test_below(random, 100000);
    for (int i = 0; i < STORE_SEQUENCES * KEYS; i++)
        s->sets[i] = (int32_t)test_below(random, SCHEME_SETS);
}

static void rows_of(const struct side *s, int32_t pairs, float *memory)
{
    posenc_tensor rows;
    posenc_error error = {0, ""};
    posenc_tensor_contiguous(&rows, memory, POSENC_F32, STORE_SEQUENCES, KEYS, 1, 2 * pairs);
    test_ok(posenc_rows(s->plan, &s->positions, &rows, &error), &error);
}

/* Divides a row by another; 0 if they were equal. */
static int quotient(const float *from, const float *to, int32_t pairs, float *row)
{
    for (int32_t i = 0; i < pairs; i++) {
        const double c0 = (double)from[i], s0 = (double)from[pairs + i];
        const double c1 = (double)to[i], s1 = (double)to[pairs + i];
        row[i] = (float)((c1 * c0 + s1 * s0) / (c0 * c0 + s0 * s0));
        row[pairs + i] = (float)((s1 * c0 - c1 * s0) / (c0 * c0 + s0 * s0));
    }
    return memcmp(from, to, (size_t)pairs * 2 * sizeof(float)) != 0;
}

static void expect_key(const struct store *s, const posenc_plan *unit, const posenc_rope_params *p,
                       float *row, int64_t sequence, int64_t key)
{
    float heads[3 * SCHEME_CHANNELS];
    const int64_t channels = s->form.channels;
    const int64_t window = channels == p->rotary_dim ? 0 : p->rotary_offset;
    posenc_tensor rows, x;
    posenc_error error = {0, ""};
    posenc_tensor_contiguous(&rows, row, POSENC_F32, 1, 1, 1, p->rotary_dim);
    posenc_tensor_contiguous(&x, heads, POSENC_F32, 1, 1, s->form.heads, channels);
    for (int64_t i = 0; i < s->form.heads * channels; i++)
        heads[i] = store_value(s, sequence, key, i / channels, i % channels);
    test_ok(posenc_rotate(unit, POSENC_FORWARD, &rows, &x, NULL, NULL, NULL, &error), &error);
    for (int64_t h = 0; h < s->form.heads; h++)
        store_part(s, sequence, key, h, heads + h * channels, window, window + p->rotary_dim);
}

/* From and to: another scheme, another base, or the same plan. */
static void any_sides(struct side side[2], posenc_rope_params *p, enum scheme scheme,
                      struct test_random *random, int32_t channels)
{
    *p = scheme_params(random, scheme, channels);
    any_side(&side[0], *p, scheme, random);
    posenc_rope_params q = *p;
    if (test_below(random, 2)) q.base = 500000;
    if (test_below(random, 3) == 0) q.attention_factor = 1.5;
    any_side(&side[1], q, scheme, random);
    if (test_below(random, 2)) {
        side[1].positions.kind = POSENC_POSITIONS_START;
        side[1].positions.axes = 0;
        side[1].positions.start = side[0].positions.start;
    }
}

static void one_case(struct test_random *random, enum scheme scheme)
{
    static struct side side[2];
    static float rows[2][STORE_SEQUENCES * KEYS * SCHEME_CHANNELS];
    const struct store_form form = store_any(random);
    struct store s;
    posenc_rope_params p;
    posenc_error error = {0, ""};
    store_new(&s, &form, random);
    any_sides(side, &p, scheme, random, (int32_t)form.channels);
    posenc_rope_params u = test_params(p.out_layout ? p.out_layout : p.layout, p.head_dim,
                                       p.rotary_dim);
    u.rotary_offset = p.rotary_offset;
    posenc_plan *unit = test_plan(&u);
    for (int n = 0; n < 2; n++)
        rows_of(&side[n], p.rotary_dim / 2, rows[n]);
    const struct store_keys r = store_any_keys(&s, random);
    void *before = store_snapshot(&s);
    for (int64_t i = 0; i < form.sequences; i++)
        for (int64_t t = 0; (r.sequence < 0 || r.sequence == i) && t < r.count; t++) {
            const int64_t at = ((r.sequence < 0 ? i : 0) * KEYS + t) * p.rotary_dim;
            float row[SCHEME_CHANNELS];
            if (quotient(rows[0] + at, rows[1] + at, p.rotary_dim / 2, row))
                expect_key(&s, unit, &p, row, i, r.first + t);
        }
    void *after = store_snapshot(&s);
    store_restore(&s, before);
    test_ok(posenc_cache_rebase(side[0].plan, &side[0].positions, side[1].plan, &side[1].positions,
                                &s.cache, r.sequence, r.first, r.count, &error), &error);
    if (!store_same(&s, after))
        fail_msg("scheme %d, kind %d, dtype %d, order %d, sequence %lld, keys %lld + %lld", scheme,
                 form.kind, form.dtype, form.order, (long long)r.sequence, (long long)r.first,
                 (long long)r.count);
    posenc_plan_free(unit);
    posenc_plan_free(side[0].plan);
    posenc_plan_free(side[1].plan);
    store_free(&s);
}

static void any_cache_has_the_bits_of_the_quotient(void **state)
{
    struct test_random random = {21};
    (void)state;
    for (int i = 0; i < (test_quick() ? 200 : 2000); i++)
        one_case(&random, (enum scheme)(i % SCHEMES));
}

/* ------------------------------------------------------------------------------------------------
 * Against the truth: a cache that the other plan had filled
 * --------------------------------------------------------------------------------------------- */

enum { TOKENS = 40, HEADS = 2, WIDTH = 64, PAIRS = WIDTH / 2 };

struct filled {
    posenc_plan *plan;
    int64_t length, start;
    double inv_freq[PAIRS], factor;
    int32_t layout;
};

static struct filled fill_of(const posenc_rope_params *p, int64_t length, int64_t start)
{
    struct filled f = {test_plan(p), length, start, {0}, 0, p->out_layout ? p->out_layout
                                                                          : p->layout};
    posenc_error error = {0, ""};
    test_ok(posenc_plan_inv_freq_at(f.plan, length, 0, f.inv_freq, PAIRS, &f.factor, &error),
            &error);
    return f;
}

static posenc_positions positions_of(const struct filled *f)
{
    posenc_positions positions;
    posenc_positions_start(&positions, f->start);
    positions.length = f->length;
    return positions;
}

/* Keys as the plan rotates and stores them. */
static void fill(const struct filled *f, const float *x, const posenc_tensor *keys)
{
    posenc_tensor in;
    posenc_error error = {0, ""};
    posenc_positions positions = positions_of(f);
    posenc_tensor_contiguous(&in, (void *)(uintptr_t)x, POSENC_F32, 1, TOKENS, HEADS, WIDTH);
    test_ok(posenc_rope(f->plan, POSENC_FORWARD, &positions, &in, keys, NULL, NULL, &error),
            &error);
}

static int channel_of(int32_t layout, int i, int second)
{
    return layout == POSENC_ADJACENT ? 2 * i + second : i + second * PAIRS;
}

/*
 * In units of u = 2^-24, with n = |a| + |b| of the pair before any rotation: storing erred by at
 * most 3 u max(1, A0) n and half an ulp in either channel, which the quotient multiplies by A1/A0;
 * then the rotation of the stored k by 3 u max(1, A1/A0) (|ka| + |kb|), and the row of `to` that it
 * aims at by 0.51 u 2^ceil(log2 A1) n; then one rounding.
 */
static long double bound_of(const struct filled *from, const struct filled *to, int32_t dtype,
                            double n, double stored[2], double result)
{
    const long double u = 0x1p-24L, ratio = (long double)(to->factor / from->factor);
    const double a0 = from->factor;
    long double rounding = 0;
    for (int i = 0; i < 2 && dtype != POSENC_F32; i++)
        rounding += (long double)test_half_ulp(stored[i], dtype);
    const long double storing = 2 * 3 * u * (a0 > 1 ? a0 : 1) * n + rounding;
    const long double sum = (long double)(fabs(stored[0]) + fabs(stored[1]));
    long double bound = storing * ratio + 3 * u * (ratio > 1 ? ratio : 1) * sum +
                        test_row_bound(to->factor) / 0.501L * 0.51L * n;
    return bound + (dtype == POSENC_F32 ? 0 : (long double)test_half_ulp(result, dtype));
}

/* The largest error as a part of its bound. */
static double worst_error(const struct filled *from, const struct filled *to, int32_t in_layout,
                          const float *x, const void *stored, const void *moved, int32_t dtype)
{
    long double worst = 0;
    for (int64_t t = 0; t < TOKENS; t++)
        for (int64_t h = 0; h < HEADS; h++)
            for (int i = 0; i < PAIRS; i++) {
                const int64_t at = (t * HEADS + h) * WIDTH;
                const int p = channel_of(to->layout, i, 0), q = channel_of(to->layout, i, 1);
                const double a = (double)x[at + channel_of(in_layout, i, 0)];
                const double b = (double)x[at + channel_of(in_layout, i, 1)];
                double k[2] = {test_load(stored, dtype, at + p), test_load(stored, dtype, at + q)};
                long double c, s;
                test_cos_sin(to->start + t, to->inv_freq[i], &c, &s);
                const long double truth[2] = {to->factor * (a * c - b * s),
                                              to->factor * (b * c + a * s)};
                for (int n = 0; n < 2; n++) {
                    const double got = test_load(moved, dtype, at + (n ? q : p));
                    const long double bound = bound_of(from, to, dtype, fabs(a) + fabs(b), k, got);
                    const long double part = fabsl(got - truth[n]) / bound;
                    worst = part > worst ? part : worst;
                }
            }
    return (double)worst;
}

/* Rebases keys of `from` to `to` in every float type and compares. 1 if no byte changed. */
static int rebase_all(const posenc_rope_params *a, int64_t a_length, int64_t a_start,
                      const posenc_rope_params *b, int64_t b_length, int64_t b_start)
{
    struct filled from = fill_of(a, a_length, a_start), to = fill_of(b, b_length, b_start);
    static float x[TOKENS * HEADS * WIDTH], stored[TOKENS * HEADS * WIDTH];
    static float moved[TOKENS * HEADS * WIDTH];
    struct test_random random = {5};
    int same = 1;
    for (int32_t dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++) {
        posenc_tensor keys;
        posenc_cache cache;
        posenc_error error = {0, ""};
        const size_t bytes = TOKENS * HEADS * WIDTH * test_size(dtype);
        posenc_positions p0 = positions_of(&from), p1 = positions_of(&to);
        test_fill(x, POSENC_F32, 0, TOKENS * HEADS * WIDTH, TEST_SMALL, &random);
        posenc_tensor_contiguous(&keys, stored, dtype, 1, TOKENS, HEADS, WIDTH);
        fill(&from, x, &keys);
        memcpy(moved, stored, bytes);
        keys.data = moved;
        posenc_cache_plain(&cache, &keys);
        test_ok(posenc_cache_rebase(from.plan, &p0, to.plan, &p1, &cache, 0, 0, TOKENS, &error),
                &error);
        const double worst = worst_error(&from, &to, a->layout, x, stored, moved, dtype);
        if (!(worst < 1)) fail_msg("dtype %d: %g of the bound", dtype, worst);
        same &= memcmp(moved, stored, bytes) == 0;
    }
    posenc_plan_free(from.plan);
    posenc_plan_free(to.plan);
    return same;
}

static posenc_rope_params longrope(int32_t layout, int32_t out_layout)
{
    static double narrow[PAIRS], wide[PAIRS];
    posenc_rope_params p = test_params(layout, WIDTH, WIDTH);
    for (int i = 0; i < PAIRS; i++) {
        narrow[i] = 1 + i / 50.0;
        wide[i] = 1 + i * i / 20.0;
    }
    p.scaling = POSENC_SCALING_LONGROPE;
    p.original_max_position = SCHEME_TRAINED;
    p.factor = 32;
    p.short_factors = narrow;
    p.long_factors = wide;
    p.out_layout = out_layout;
    return p;
}

static void longrope_switches_where_the_length_does(void **state)
{
    static const int64_t lengths[][3] = {
        {SCHEME_TRAINED, SCHEME_TRAINED + 1, 0},     {SCHEME_TRAINED + 1, SCHEME_TRAINED, 0},
        {SCHEME_TRAINED - 1, SCHEME_TRAINED, 1},     {SCHEME_TRAINED + 1, SCHEME_TRAINED + 2, 1},
        {1, SCHEME_TRAINED, 1},                      {1, 131072, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (int32_t layout = 1; layout <= 2; layout++)
            for (int32_t out = 1; out <= 2; out++) {
                posenc_rope_params p = longrope(layout, out);
                assert_int_equal(rebase_all(&p, lengths[i][0], 4090, &p, lengths[i][1], 4090),
                                 lengths[i][2]);
                p.short_attention = 1.25;
                p.long_attention = 1.75;
                assert_int_equal(rebase_all(&p, lengths[i][0], 4090, &p, lengths[i][1], 4090),
                                 lengths[i][2]);
            }
}

static void dynamic_frequencies_grow(void **state)
{
    posenc_rope_params p = test_params(POSENC_SPLIT_HALF, WIDTH, WIDTH);
    (void)state;
    p.scaling = POSENC_SCALING_DYNAMIC_NTK;
    p.factor = 4;
    p.original_max_position = SCHEME_TRAINED;
    assert_true(rebase_all(&p, 1, 0, &p, SCHEME_TRAINED, 0));
    assert_false(rebase_all(&p, SCHEME_TRAINED, 3000, &p, SCHEME_TRAINED + 1, 3000));
    assert_false(rebase_all(&p, SCHEME_TRAINED + 1, 3000, &p, SCHEME_TRAINED + 2, 3000));
    assert_false(rebase_all(&p, 5000, 4950, &p, 16000, 4950));
}

static void any_two_plans(void **state)
{
    posenc_rope_params plain = test_params(POSENC_SPLIT_HALF, WIDTH, WIDTH), base = plain;
    posenc_rope_params yarn = plain;
    (void)state;
    base.base = 500000;
    yarn.scaling = POSENC_SCALING_YARN;
    yarn.factor = 4;
    yarn.original_max_position = SCHEME_TRAINED;
    assert_false(rebase_all(&plain, 1, 77, &base, 1, 77));
    assert_false(rebase_all(&plain, 1, 9000, &yarn, 1, 9000));
    assert_false(rebase_all(&yarn, 1, 9000, &plain, 1, 9000));
    assert_false(rebase_all(&yarn, 1, 5, &yarn, 1, 90000)); /* a move */
    assert_true(rebase_all(&yarn, 1, 5, &yarn, 1, 5));
    yarn.attention_factor = 0.25;
    assert_false(rebase_all(&plain, 1, 0, &yarn, 1, 0)); /* another factor alone at position 0 */
    assert_true(rebase_all(&plain, 1, 33, &plain, 1, 33));
}

/* ------------------------------------------------------------------------------------------------
 * Refusals
 * --------------------------------------------------------------------------------------------- */

static float table_cos[8 * 4], table_sin[8 * 4];

static void refusals(void **state)
{
    static float keys[6 * 2 * 8], mark[6 * 2 * 8];
    posenc_rope_params p = test_params(POSENC_ADJACENT, 8, 8), q = p;
    posenc_plan *plan = test_plan(&p), *other, *table;
    posenc_positions at, beyond;
    posenc_tensor t;
    posenc_cache cache;
    posenc_error error = {0, ""};
    (void)state;
    posenc_tensor_contiguous(&t, keys, POSENC_F32, 2, 3, 2, 8);
    posenc_cache_plain(&cache, &t);
    posenc_positions_start(&at, 1);
    memcpy(mark, keys, sizeof keys);
#define REFUSED(from, p0, to, p1, status, words)                                               \
    test_refused(posenc_cache_rebase(from, p0, to, p1, &cache, -1, 0, 3, &error), status,      \
                 &error, words)
    REFUSED(NULL, &at, plan, &at, POSENC_ERROR_ARGUMENT, "from is NULL");
    REFUSED(plan, &at, NULL, &at, POSENC_ERROR_ARGUMENT, "to is NULL");
    REFUSED(plan, NULL, plan, &at, POSENC_ERROR_ARGUMENT, "from_positions is NULL");
    REFUSED(plan, &at, plan, NULL, POSENC_ERROR_ARGUMENT, "to_positions is NULL");
    beyond = at;
    beyond.start = INT64_C(1) << 31;
    REFUSED(plan, &beyond, plan, &at, POSENC_ERROR_POSITION, "from_positions: position|2147483648");
    REFUSED(plan, &at, plan, &beyond, POSENC_ERROR_POSITION, "to_positions: position|2147483648");
    beyond.kind = POSENC_POSITIONS_STARTS;
    beyond.dtype = POSENC_I64;
    beyond.ids = keys + 8;
    beyond.stride[0] = 1;
    REFUSED(plan, &at, plan, &beyond, POSENC_ERROR_OVERLAP, "to_positions: cache|share memory");
    q.rotary_dim = 6;
    other = test_plan(&q);
    REFUSED(plan, &at, other, &at, POSENC_ERROR_ARGUMENT, "rotary_dim 8, to has 6|the same");
    posenc_plan_free(other);
    q = p;
    q.out_layout = POSENC_SPLIT_HALF;
    other = test_plan(&q);
    REFUSED(plan, &at, other, &at, POSENC_ERROR_ARGUMENT, "stored layout 1, to has 2");
    posenc_plan_free(other);
    q = p;
    q.cos_table = table_cos;
    q.sin_table = table_sin;
    q.cos_rows = q.sin_rows = 8;
    for (int i = 0; i < 32; i++) table_cos[i] = 1;
    table = test_plan(&q);
    table_cos[3 * 4 + 2] = 0;
    REFUSED(table, &at, plan, &at, POSENC_ERROR_POSITION,
            "from and to|batch row 0, token 2, pair 2|finite");
#undef REFUSED
    /* Where nothing changes there is nothing to undo. */
    test_ok(posenc_cache_rebase(table, &at, table, &at, &cache, -1, 0, 3, &error), &error);
    assert_memory_equal(mark, keys, sizeof keys);
    posenc_plan_free(table);
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cache_has_the_bits_of_the_quotient),
        cmocka_unit_test(longrope_switches_where_the_length_does),
        cmocka_unit_test(dynamic_frequencies_grow),
        cmocka_unit_test(any_two_plans),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
