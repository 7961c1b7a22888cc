/* SPDX-License-Identifier: MIT */
/* Moved keys against long double: one move, sums of moves, a hundred of them, a shifted ring. */
#include "cache_store.h"
#include "support/half.h"
#include "support/truth.h"

#include <math.h>

enum { TOKENS = 24, HEADS = 2, WIDTH = 64, PAIRS = WIDTH / 2, AXES = 3 };
static const int32_t dtypes[3] = {POSENC_F32, POSENC_F16, POSENC_BF16};

/* A plan for keys, and what the truth needs of it. */
struct scheme {
    const char *name;
    posenc_plan *plan;
    int32_t layout, stored, offset, pairs, head, axes;
    double inv_freq[PAIRS], factor, decay; /* decay: 1 / B, or 0 */
    int64_t length, center;
};

static int32_t axis_of_pair[PAIRS];

static struct scheme scheme_of(const char *name, posenc_rope_params p, int64_t length)
{
    struct scheme s = {.name = name, .plan = test_plan(&p), .layout = p.layout,
                       .stored = p.out_layout ? p.out_layout : p.layout,
                       .offset = p.rotary_offset, .pairs = p.rotary_dim / 2, .head = p.head_dim,
                       .axes = p.axes ? p.axes : 1, .length = length, .center = p.xpos_center,
                       .decay = p.xpos ? 1 / p.xpos_scale_base : 0};
    posenc_error error = {0, ""};
    test_ok(posenc_plan_inv_freq_at(s.plan, length, 0, s.inv_freq, (size_t)s.pairs, &s.factor,
                                    &error), &error);
    return s;
}

/* By what a key's pair is multiplied over `distance` positions from xPos' centre. */
static long double decay_of(const struct scheme *s, int i, int64_t distance)
{
    const long double r = 2 * s->pairs;
    return s->decay == 0 ? 1 : powl((2 * i + 0.4L * r) / (1.4L * r),
                                    -(long double)distance * (long double)s->decay);
}

static int channel_of(const struct scheme *s, int32_t layout, int i, int second)
{
    return s->offset + (layout == POSENC_ADJACENT ? 2 * i + second : i + second * s->pairs);
}

/* Where the tokens stand: an id for each axis. */
struct places { int64_t at[AXES][TOKENS]; };

static posenc_positions ids_of(const struct scheme *s, const struct places *places)
{
    return (posenc_positions){.struct_size = sizeof(posenc_positions),
                              .kind = POSENC_POSITIONS_IDS, .dtype = POSENC_I64,
                              .ids = places->at, .stride = {0, 1}, .axes = s->axes,
                              .axis_stride = TOKENS, .length = s->length};
}

/* Keys and, for each pair, how far they may be from the truth: the length of the error of both
 * channels. A turn keeps lengths, so the errors of all steps add. */
struct keys {
    int32_t dtype;
    float memory[TOKENS * HEADS * WIDTH];
    long double bound[TOKENS * HEADS * PAIRS];
};

static posenc_tensor tensor_of(const struct scheme *s, void *memory, int32_t dtype)
{
    posenc_tensor t;
    posenc_tensor_contiguous(&t, memory, dtype, 1, TOKENS, HEADS, s->head);
    return t;
}

/*
 * One step: each channel errs by 3 u max(1, scale) n, n the sum of both channels before it
 * (accuracy.md), and by half an ulp of the result; both channels together by sqrt 2 times that.
 */
static void add_step(const struct scheme *s, struct keys *k, const float *x, int32_t x_dtype,
                     int32_t x_layout, const int64_t *distance, int first)
{
    for (int64_t n = 0; n < TOKENS * HEADS; n++)
        for (int i = 0; i < s->pairs; i++) {
            const int64_t at = n * s->head;
            long double sum = 0, ulp = 0, scale = decay_of(s, i, distance[n / HEADS]);
            for (int c = 0; c < 2; c++) {
                const int out = channel_of(s, s->stored, i, c);
                sum += fabsl(test_load(x, x_dtype, at + channel_of(s, x_layout, i, c)));
                if (k->dtype != POSENC_F32)
                    ulp = fmaxl(ulp, test_half_ulp(test_load(k->memory, k->dtype, at + out),
                                                   k->dtype));
            }
            if (first) scale *= s->factor;
            long double *bound = &k->bound[n * s->pairs + i];
            *bound = (first ? 0 : *bound * scale) +
                     1.4142136L * (3 * 0x1p-24L * fmaxl(1, scale) * sum + ulp);
        }
}

static void fill_keys(const struct scheme *s, struct keys *k, int32_t dtype, float *x,
                      const struct places *places, uint32_t seed)
{
    struct test_random random = {seed};
    int64_t distance[TOKENS];
    posenc_positions positions = ids_of(s, places);
    posenc_error error = {0, ""};
    k->dtype = dtype;
    test_fill(x, POSENC_F32, 0, TOKENS * HEADS * s->head, TEST_SMALL, &random);
    posenc_tensor in = tensor_of(s, x, POSENC_F32), out = tensor_of(s, k->memory, dtype);
    test_ok(posenc_rope(s->plan, POSENC_FORWARD, &positions, NULL, NULL, &in, &out, &error),
            &error);
    for (int t = 0; t < TOKENS; t++) distance[t] = places->at[0][t] - s->center;
    add_step(s, k, x, POSENC_F32, s->layout, distance, 1);
}

/* Moves the keys and their places. */
static void move_keys(const struct scheme *s, struct keys *k, struct places *places,
                      const struct places *deltas)
{
    static float before[TOKENS * HEADS * WIDTH];
    posenc_positions positions = ids_of(s, deltas);
    posenc_tensor t = tensor_of(s, k->memory, k->dtype);
    posenc_cache cache;
    posenc_error error = {0, ""};
    memcpy(before, k->memory, sizeof before);
    posenc_cache_plain(&cache, &t);
    test_ok(posenc_cache_move(s->plan, &positions, &cache, 0, 0, TOKENS, &error), &error);
    add_step(s, k, before, k->dtype, s->stored, deltas->at[0], 0);
    for (int i = 0; i < AXES * TOKENS; i++)
        places->at[i / TOKENS][i % TOKENS] += deltas->at[i / TOKENS][i % TOKENS];
}

/* The truth of a pair. */
static void turn(const struct scheme *s, const float *x, const struct places *places, int64_t n,
                 int i, long double truth[2])
{
    const int64_t t = n / HEADS, at = n * s->head;
    const int axis = s->axes > 1 ? axis_of_pair[i] : 0;
    const long double a = (long double)x[at + channel_of(s, s->layout, i, 0)];
    const long double b = (long double)x[at + channel_of(s, s->layout, i, 1)];
    const long double scale = s->factor * decay_of(s, i, places->at[0][t] - s->center);
    long double c, sine;
    test_cos_sin(places->at[axis][t], s->inv_freq[i], &c, &sine);
    truth[0] = scale * (a * c - b * sine);
    truth[1] = scale * (b * c + a * sine);
}

/* The largest error as a part of its bound, in all channels; relative to the whole in *rms. */
static double check_keys(const struct scheme *s, const struct keys *k, const float *x,
                         const struct places *places, double *rms)
{
    long double worst = 0, squares = 0, all = 0;
    for (int64_t n = 0; n < TOKENS * HEADS; n++)
        for (int i = 0; i < s->pairs; i++) {
            long double truth[2], square = 0;
            turn(s, x, places, n, i, truth);
            for (int c = 0; c < 2; c++) {
                const int64_t at = n * s->head + channel_of(s, s->stored, i, c);
                const long double e = test_load(k->memory, k->dtype, at) - truth[c];
                square += e * e;
                all += truth[c] * truth[c];
            }
            squares += square;
            worst = fmaxl(worst, sqrtl(square) / k->bound[n * s->pairs + i]);
        }
    if (rms) *rms = (double)sqrtl(squares / all);
    if (!(worst < 1)) fail_msg("%s, dtype %d: %g of the bound", s->name, k->dtype, (double)worst);
    return (double)worst;
}

static struct places any_places(struct test_random *random, int64_t most, int axes)
{
    struct places p;
    for (int t = 0; t < TOKENS; t++)
        for (int a = 0; a < AXES; a++) {
            const int64_t any = (int64_t)test_below(random, (uint32_t)(2 * most)) - most;
            p.at[a][t] = a < axes ? any : p.at[0][t];
        }
    return p;
}

/* Fills, moves twice, and compares after each. */
static void check_scheme(const char *name, const posenc_rope_params *p, int64_t length,
                         int64_t most)
{
    struct scheme s = scheme_of(name, *p, length);
    static float x[TOKENS * HEADS * WIDTH];
    struct test_random random = {(uint32_t)p->head_dim};
    for (int d = 0; d < 3; d++) {
        struct keys k;
        struct places at = any_places(&random, most, s.axes);
        struct places deltas = any_places(&random, most, s.axes);
        fill_keys(&s, &k, dtypes[d], x, &at, 77);
        check_keys(&s, &k, x, &at, NULL);
        move_keys(&s, &k, &at, &deltas);
        assert_true(check_keys(&s, &k, x, &at, NULL) > 0.01);
        deltas = any_places(&random, most, s.axes);
        move_keys(&s, &k, &at, &deltas);
        check_keys(&s, &k, x, &at, NULL);
    }
    posenc_plan_free(s.plan);
}

static posenc_rope_params yarn_of(int32_t layout)
{
    posenc_rope_params p = test_params(layout, WIDTH, WIDTH);
    p.scaling = POSENC_SCALING_YARN;
    p.factor = 4;
    p.original_max_position = 4096;
    return p;
}

static void keys_stand_where_they_were_moved(void **state)
{
    (void)state;
    for (int32_t layout = 1; layout <= 2; layout++)
        for (int32_t out = 1; out <= 2; out++) {
            posenc_rope_params p = test_params(layout, WIDTH, WIDTH);
            p.out_layout = out;
            check_scheme("plain", &p, 1, 1000000);
            p.rotary_dim = 38;
            p.rotary_offset = 9;
            check_scheme("window", &p, 1, 5000);
            p = yarn_of(layout);
            p.out_layout = out;
            check_scheme("yarn", &p, 1, 20000);
            p.recipe = POSENC_RECIPE_HF_F32;
            check_scheme("recipe at 0", &p, 1, 1); /* rows of a recipe at far positions differ */
            p = test_params(layout, WIDTH, WIDTH);
            p.out_layout = out;
            p.scaling = POSENC_SCALING_DYNAMIC_NTK;
            p.factor = 4;
            p.original_max_position = 4096;
            check_scheme("dynamic", &p, 4096, 3000);
            check_scheme("dynamic beyond", &p, 30000, 15000);
        }
}

static void every_axis_has_its_delta(void **state)
{
    posenc_rope_params p = test_params(POSENC_SPLIT_HALF, WIDTH, WIDTH);
    (void)state;
    p.axes = AXES;
    p.axis_of_pair = axis_of_pair;
    for (int i = 0; i < PAIRS; i++) axis_of_pair[i] = i % AXES;
    check_scheme("interleaved sections", &p, 1, 3000);
    for (int i = 0; i < PAIRS; i++) axis_of_pair[i] = i < 16 ? 0 : i < 24 ? 1 : 2;
    check_scheme("sections", &p, 1, 3000);
}

/* The decay of a delta is that of its distance alone, wherever the centre is. */
static void decays_compose(void **state)
{
    posenc_rope_params p = test_params(POSENC_ADJACENT, WIDTH, WIDTH);
    (void)state;
    p.xpos = POSENC_XPOS_KEYS;
    check_scheme("xpos", &p, 1, 400);
    p.xpos_center = 1000;
    check_scheme("xpos with a centre", &p, 1, 400);
}

/* What a shift that applies the factor again would make of a hundred moves: 1.1386^100. */
static void a_hundred_moves_do_not_grow(void **state)
{
    (void)state;
    for (int32_t layout = 1; layout <= 2; layout++) {
        struct scheme s = scheme_of("yarn moved on", yarn_of(layout), 1);
        static float x[TOKENS * HEADS * WIDTH];
        assert_true(s.factor > 1.13);
        for (int d = 0; d < 3; d++) {
            struct keys k;
            struct places at, back;
            double rms;
            for (int i = 0; i < AXES * TOKENS; i++) {
                at.at[i / TOKENS][i % TOKENS] = 9000 + i % TOKENS;
                back.at[i / TOKENS][i % TOKENS] = -7;
            }
            fill_keys(&s, &k, dtypes[d], x, &at, 5);
            for (int n = 0; n < 100; n++)
                move_keys(&s, &k, &at, &back);
            check_keys(&s, &k, x, &at, &rms);
            /* Slow pairs turn by less than half an ulp and so not at all: the most of it. */
            assert_true(rms < (d == 0 ? 5e-6 : d == 1 ? 2e-2 : 2e-1));
        }
        posenc_plan_free(s.plan);
    }
}

/* Scales of I8 as a cache has them, and keys in between. */
struct eight {
    int8_t rows[TOKENS * HEADS * WIDTH];
    float scales[TOKENS * HEADS * 2]; /* or of F16 */
    posenc_cache cache;
    int64_t groups;
};

static void make_eight(struct eight *e, int64_t groups, int32_t scale_dtype)
{
    posenc_tensor t;
    posenc_tensor_contiguous(&t, e->rows, POSENC_I8, 1, TOKENS, HEADS, WIDTH);
    posenc_cache_plain(&e->cache, &t);
    posenc_tensor_contiguous(&e->cache.scales, e->scales, scale_dtype, 1, TOKENS, HEADS, groups);
    e->groups = groups;
}

/* Each channel errs by half its scale and by the rotation before; see cache.h. */
static void add_quantising(const struct scheme *s, struct keys *k, const struct eight *e)
{
    for (int64_t n = 0; n < TOKENS * HEADS; n++)
        for (int i = 0; i < PAIRS; i++) {
            long double scale = 0;
            for (int c = 0; c < 2; c++) {
                const int64_t group = channel_of(s, s->stored, i, c) / (WIDTH / e->groups);
                scale = fmaxl(scale, test_load(e->scales, e->cache.scales.dtype,
                                               n * e->groups + group));
            }
            k->bound[n * PAIRS + i] += 1.4142136L * scale *
                                       (0.5L * (1 + 0x1p-10L) + 3 * 0x1p-24L * 2 * 128);
        }
}

static void copy_keys(const posenc_cache *from, const posenc_cache *to)
{
    posenc_error error = {0, ""};
    test_ok(posenc_cache_copy(from, 0, 0, NULL, to, 0, 0, TOKENS, &error), &error);
}

static void int8_errs_by_half_a_scale(void **state)
{
    static struct eight e;
    static float x[TOKENS * HEADS * WIDTH];
    (void)state;
    for (int way = 0; way < 8; way++) {
        struct scheme s = scheme_of("int8", yarn_of(1 + way % 2), 1);
        struct keys k;
        struct places at, back;
        posenc_error error = {0, ""};
        posenc_cache plain;
        double rms = 0;
        for (int i = 0; i < AXES * TOKENS; i++) {
            at.at[i / TOKENS][i % TOKENS] = 9000 + i % TOKENS;
            back.at[i / TOKENS][i % TOKENS] = -7;
        }
        fill_keys(&s, &k, POSENC_F32, x, &at, 5);
        posenc_tensor t = tensor_of(&s, k.memory, POSENC_F32);
        posenc_cache_plain(&plain, &t);
        make_eight(&e, 1 + way / 2 % 2, way / 4 ? POSENC_F16 : POSENC_F32);
        copy_keys(&plain, &e.cache);
        add_quantising(&s, &k, &e);
        posenc_positions deltas = ids_of(&s, &back);
        for (int n = 0; n < 100; n++) {
            test_ok(posenc_cache_move(s.plan, &deltas, &e.cache, 0, 0, TOKENS, &error), &error);
            add_quantising(&s, &k, &e);
            for (int i = 0; i < AXES * TOKENS; i++) at.at[i / TOKENS][i % TOKENS] -= 7;
            if (n % 33 && n < 99) continue;
            copy_keys(&e.cache, &plain);
            check_keys(&s, &k, x, &at, &rms);
        }
        assert_true(rms < 0.2);
        posenc_plan_free(s.plan);
    }
}

/* ------------------------------------------------------------------------------------------------
 * A ring whose keys move down while its turn counts up
 * --------------------------------------------------------------------------------------------- */

enum { SLOTS = 20, KEEP = 4, DROP = 5, ROUNDS = 6, LAST = 200 };

struct ring {
    struct scheme scheme;
    posenc_cache cache;
    float memory[SLOTS * WIDTH], token[LAST][WIDTH]; /* token[j]: what key j is */
    int moves[LAST];
    int64_t turn, last;
};

static float *slot_of(const struct ring *r, int64_t key)
{
    int64_t block, slot;
    posenc_error error = {0, ""};
    test_ok(posenc_cache_locate(&r->cache, 0, key, &block, &slot, &error), &error);
    return (float *)(uintptr_t)r->memory + slot * WIDTH;
}

static void append_key(struct ring *r, struct test_random *random)
{
    posenc_tensor in, out;
    posenc_positions position;
    posenc_error error = {0, ""};
    const int64_t key = r->last++;
    test_fill(r->token[key], POSENC_F32, 0, WIDTH, TEST_SMALL, random);
    r->moves[key] = 0;
    posenc_positions_start(&position, key);
    posenc_tensor_contiguous(&in, r->token[key], POSENC_F32, 1, 1, 1, WIDTH);
    posenc_tensor_contiguous(&out, slot_of(r, key), POSENC_F32, 1, 1, 1, WIDTH);
    test_ok(posenc_rope(r->scheme.plan, POSENC_FORWARD, &position, &in, &out, NULL, NULL, &error),
            &error);
}

/* Takes DROP keys out behind the kept ones: the others stand lower and are counted lower. */
static void shift(struct ring *r)
{
    const int64_t low = r->last - (SLOTS - KEEP) > KEEP ? r->last - (SLOTS - KEEP) : KEEP;
    const int64_t delta = -DROP, first = low + DROP;
    posenc_error error = {0, ""};
    posenc_positions deltas = {.struct_size = sizeof deltas, .kind = POSENC_POSITIONS_IDS,
                               .dtype = POSENC_I64, .ids = &delta};
    test_ok(posenc_cache_move(r->scheme.plan, &deltas, &r->cache, 0, first, r->last - first,
                              &error), &error);
    r->turn += DROP;
    for (int64_t j = first; j < r->last; j++) {
        memcpy(r->token[j - DROP], r->token[j], sizeof r->token[j]);
        r->moves[j - DROP] = r->moves[j] + 1;
    }
    r->last -= DROP;
}

/* Every key that is stored is what a cache built at these places would hold. */
static void check_ring(const struct ring *r, int64_t low)
{
    for (int64_t j = 0; j < r->last; j++) {
        if (j >= KEEP && j < low) continue;
        const float *got = slot_of(r, j), *x = r->token[j];
        for (int i = 0; i < PAIRS; i++) {
            long double c, s;
            const int p = channel_of(&r->scheme, r->scheme.stored, i, 0);
            const int q = channel_of(&r->scheme, r->scheme.stored, i, 1);
            const long double a = (long double)x[p], b = (long double)x[q], f = r->scheme.factor;
            test_cos_sin(j, r->scheme.inv_freq[i], &c, &s);
            const long double e = hypotl((long double)got[p] - f * (a * c - b * s),
                                         (long double)got[q] - f * (b * c + a * s));
            const long double bound = 1.4142136L * 3 * 0x1p-24L * f * 1.42L *
                                      (fabsl(a) + fabsl(b)) * (1 + r->moves[j]);
            assert_true(e <= bound);
        }
    }
}

static void a_ring_turns(void **state)
{
    static struct ring r;
    struct test_random random = {8};
    posenc_tensor t;
    (void)state;
    r.scheme = scheme_of("ring", yarn_of(POSENC_SPLIT_HALF), 1);
    posenc_tensor_contiguous(&t, r.memory, POSENC_F32, 1, SLOTS, 1, WIDTH);
    posenc_cache_plain(&r.cache, &t);
    r.cache.kind = POSENC_CACHE_RING;
    r.cache.keep = KEEP;
    r.cache.turns = &r.turn;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < (round ? 13 : 50); i++) append_key(&r, &random);
        check_ring(&r, r.last - (SLOTS - KEEP));
        const int64_t low = r.last - (SLOTS - KEEP);
        shift(&r);
        check_ring(&r, low); /* the first DROP of them are gone, those above took their names */
    }
    posenc_plan_free(r.scheme.plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_stand_where_they_were_moved),
        cmocka_unit_test(every_axis_has_its_delta),
        cmocka_unit_test(decays_compose),
        cmocka_unit_test(a_hundred_moves_do_not_grow),
        cmocka_unit_test(int8_errs_by_half_a_scale),
        cmocka_unit_test(a_ring_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
