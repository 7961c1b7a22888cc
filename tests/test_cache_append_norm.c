/* SPDX-License-Identifier: MIT */
/* Appends that compute: the bits of their definition on every ISA, and a bound of their truth. */
#include "append_model.h"
#include "append_support.h"
#include "support/half.h"

#include <math.h>
#include <stdio.h>

enum { ROOM = MODEL_HEADS * MODEL_CHANNELS * APPEND_ALL * 4 };

/* Everything random in a call. */
struct draw {
    struct append_case c;
    struct model_token model;
    posenc_plan *plan;
    posenc_tensor weight, rows;
    int per_head;
};

static uint32_t src_memory[ROOM / 4], out_memory[ROOM / 4], image[ROOM / 4];
static float weight_memory[MODEL_HEADS * MODEL_CHANNELS], wide[MODEL_HEADS * MODEL_CHANNELS];
static float row_memory[APPEND_ALL * MODEL_CHANNELS];

static int64_t draw_channels(struct test_random *random)
{
    static const int64_t some[] = {2,   6,   16,  18,  32,  64,  80,  96,
                                   128, 130, 256, 258, 300, 576, 1090};
    return some[test_below(random, sizeof some / sizeof some[0])];
}

static void draw_plan(struct draw *d, int64_t channels, int32_t isa, struct test_random *random)
{
    int32_t pairs = 1 + (int32_t)test_below(random, (uint32_t)channels / 2);
    posenc_rope_params params;

    d->plan = NULL;
    d->model.pairs = d->model.window = 0;
    d->model.layout = d->model.out_layout = POSENC_SPLIT_HALF;
    if (test_below(random, 6) == 0) return;
    if (test_below(random, 2)) pairs = (int32_t)channels / 2;
    params = test_params(1 + (int32_t)test_below(random, 2), (int32_t)channels, 2 * pairs);
    params.rotary_offset = (int32_t)test_below(random, (uint32_t)(channels - 2 * pairs + 1));
    params.out_layout = test_below(random, 4) ? 0 : 3 - params.layout;
    params.isa = isa;
    d->plan = test_plan(&params);
    d->model.pairs = pairs;
    d->model.window = 2 * pairs == channels ? 0 : params.rotary_offset;
    d->model.layout = params.layout;
    d->model.out_layout = params.out_layout ? params.out_layout : params.layout;
}

/* Ordinary values, some heads large, tiny, zero, infinite or NaN. */
static void draw_source(struct draw *d, int wild, struct test_random *random)
{
    const int64_t *shape = d->c.src.tensor.shape;
    int32_t dtype = d->c.src.tensor.dtype;

    test_view_fill(&d->c.src, src_memory, TEST_NAN, 0, shape[3], random);
    test_view_at(&d->c.src, src_memory);
    for (int64_t i = 0; wild && i < shape[0] * shape[1] * shape[2]; i++) {
        static const double values[] = {0, -0.0, 1e-30, 1e30, (double)INFINITY, (double)NAN};
        int64_t h = i % shape[2], t = i / shape[2] % shape[1], b = i / shape[2] / shape[1];
        uint32_t which = test_below(random, 18);

        for (int64_t c = 0; which < 6 && c < shape[3]; c += which < 4 ? 1 : shape[3]) {
            test_store(src_memory, dtype, test_view_index(&d->c.src, b, t, h, c), values[which]);
        }
    }
}

static void draw_weight(struct draw *d, struct test_random *random)
{
    int64_t heads = d->model.heads, n = d->model.channels, rows;
    int32_t dtype = POSENC_F32 + (int32_t)test_below(random, 3);
    int plus_one = (int)test_below(random, 2);

    d->model.weight = NULL;
    if (!d->model.norm || test_below(random, 4) == 0) return;
    d->per_head = (int)test_below(random, 2);
    rows = d->per_head ? heads : 1;
    test_fill(weight_memory, dtype, 0, rows * n, TEST_SMALL, random);
    posenc_tensor_contiguous(&d->weight, weight_memory, dtype, 1, 1, rows, n);
    d->c.params.weight = &d->weight;
    d->c.params.weight_plus_one = plus_one;
    for (int64_t i = 0; i < heads * n; i++) {
        float w = (float)test_load(weight_memory, dtype, d->per_head ? i : i % n);
        wide[i] = plus_one ? 1.0f + w : w;
    }
    d->model.weight = wide;
}

static void draw_call(struct draw *d, int32_t isa, int wild, struct test_random *random)
{
    static const double epses[] = {0, 1e-6, 1e-5, 1};
    static const double scales[] = {0, 0, 1, 0.125, -3.7, 1.1};
    int64_t channels = draw_channels(random);
    int64_t heads = 1 + test_below(random, channels > 300 ? 3 : MODEL_HEADS);

    memset(&d->model, 0, sizeof d->model);
    append_case_new(&d->c, (enum append_geometry)test_below(random, APPEND_GEOMETRIES),
                    POSENC_F32 + (int32_t)test_below(random, 3),
                    POSENC_F32 + (int32_t)test_below(random, 3),
                    (enum test_order)test_below(random, TEST_ORDERS),
                    (enum test_order)test_below(random, TEST_ORDERS), heads, channels);
    d->c.cache.header = NULL;
    if (d->c.geometry == APPEND_ONE_START) d->c.params.start = 3;
    d->model.heads = heads;
    d->model.channels = channels;
    d->model.norm = (int32_t)test_below(random, 3);
    d->model.norm_after = d->model.norm ? (int32_t)test_below(random, 2) : 0;
    d->model.eps = epses[test_below(random, 4)];
    d->model.scale = scales[test_below(random, 6)];
    draw_plan(d, channels, isa, random);
    draw_weight(d, random);
    draw_source(d, wild, random);
    d->c.params.isa = isa;
    d->c.params.norm = d->model.norm;
    d->c.params.norm_after = d->model.norm_after;
    d->c.params.eps = d->model.eps;
    d->c.params.scale = d->model.scale;
    d->c.params.stream = (int32_t)test_below(random, 2);
    test_view_at(&d->c.rows, out_memory);
    d->c.cache.rows = d->c.rows.tensor;
    if (!d->plan) return;
    posenc_positions positions;
    append_positions(&positions);
    posenc_tensor_contiguous(&d->rows, row_memory, POSENC_F32,
                             test_below(random, 2) ? 1 : d->c.src.tensor.shape[0], APPEND_TOKENS, 1,
                             2 * d->model.pairs);
    test_ok(posenc_rows(d->plan, &positions, &d->rows, NULL), NULL);
    d->c.params.rope = d->plan;
    d->c.params.rows = &d->rows;
}

/* The model of one token of src. */
static void set_token(struct draw *d, int64_t b, int64_t t, float *x)
{
    const posenc_tensor *src = &d->c.src.tensor;

    for (int64_t i = 0; i < d->model.heads * d->model.channels; i++) {
        x[i] = (float)test_load(src_memory, src->dtype,
                                test_view_index(&d->c.src, b, t, i / d->model.channels,
                                                i % d->model.channels));
    }
    d->model.x = x;
    if (d->plan) {
        int64_t row = d->rows.shape[0] > 1 ? b : 0;
        d->model.row = row_memory + (row * APPEND_TOKENS + t) * 2 * d->model.pairs;
    }
}

static void fail_draw(const struct draw *d, int32_t isa, uint32_t seed, int64_t at)
{
    fail_msg("isa %d, seed %u, element %d: [%d heads of %d], %d pairs from %d on, layout %d to %d, "
             "norm %d after %d, dtype %d to %d, geometry %d, stream %d",
             isa, seed, (int)at, (int)d->model.heads, (int)d->model.channels, d->model.pairs,
             d->model.window, d->model.layout, d->model.out_layout, d->model.norm,
             d->model.norm_after, d->c.src.tensor.dtype, d->c.rows.tensor.dtype,
             (int)d->c.geometry, d->c.params.stream);
}

/* The whole memory of the cache after the call. */
static void check_bits(struct draw *d, int32_t isa, uint32_t seed)
{
    static float x[MODEL_HEADS * MODEL_CHANNELS], y[MODEL_HEADS * MODEL_CHANNELS];
    static uint32_t plain[ROOM / 4];
    int32_t to = d->c.rows.tensor.dtype;
    int64_t all = d->model.heads * d->model.channels;
    size_t bytes = (size_t)d->c.rows.elements * test_size(to);
    posenc_error error = {0, ""};

    for (int64_t b = 0, at = 0; b < d->c.src.tensor.shape[0]; b++)
        for (int64_t t = 0; t < APPEND_TOKENS; t++) {
            set_token(d, b, t, x);
            model_bits(&d->model, y);
            for (int64_t i = 0; i < all; i++, at++) test_store(plain, to, at, (double)y[i]);
        }
    memset(image, 0xa5, bytes);
    memset(out_memory, 0xa5, bytes);
    append_image(&d->c, plain, image);
    test_ok(posenc_cache_append(&d->c.params, &d->c.src.tensor, &d->c.cache, &error), &error);
    for (int64_t i = 0; i < d->c.rows.elements; i++) {
        if (!test_same_element(out_memory, image, to, i)) fail_draw(d, isa, seed, i);
    }
}

static void bits_are_those_of_the_definition(void **state)
{
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);
    uint32_t draws = test_quick() ? 60 : 400;

    (void)state;
    for (size_t i = 0; i < n; i++)
        for (uint32_t seed = 1; seed <= draws; seed++) {
            static struct draw d;
            struct test_random random = {seed};

            draw_call(&d, isas[i], seed % 2 == 0, &random);
            check_bits(&d, isas[i], seed);
            posenc_plan_free(d.plan);
        }
}

/* The same call with one token after the other into another part of what it wrote before. */
static void errors_stay_within_their_bound(void **state)
{
    static struct draw d;
    static float x[MODEL_HEADS * MODEL_CHANNELS];
    static long double y[MODEL_HEADS * MODEL_CHANNELS], bound[MODEL_HEADS * MODEL_CHANNELS];
    uint32_t draws = test_quick() ? 40 : 300;
    long double worst = 0;

    (void)state;
    for (uint32_t seed = 1; seed <= draws; seed++) {
        struct test_random random = {seed + 77777};
        posenc_error error = {0, ""};

        draw_call(&d, POSENC_ISA_DEFAULT, 0, &random);
        test_ok(posenc_cache_append(&d.c.params, &d.c.src.tensor, &d.c.cache, &error), &error);
        for (int64_t b = 0; b < d.c.src.tensor.shape[0]; b++)
            for (int64_t t = 0; t < APPEND_TOKENS; t++) {
                int64_t sequence, key = append_key(&d.c, b, t, &sequence);

                /* in rings and shared pages only the last token of a slot is still there */
                if (key < 0 || d.c.cache.kind != POSENC_CACHE_CONTIGUOUS) continue;
                set_token(&d, b, t, x);
                model_truth(&d.model, y, bound);
                for (int64_t i = 0; i < d.model.heads * d.model.channels; i++) {
                    int64_t h = i / d.model.channels, c = i % d.model.channels;
                    double got = test_load(out_memory, d.c.rows.tensor.dtype,
                                           append_at(&d.c, sequence, key, h) + c);
                    long double most =
                        bound[i] + (long double)(d.c.rows.tensor.dtype == POSENC_F32
                                                     ? 0
                                                     : test_half_ulp(got, d.c.rows.tensor.dtype));
                    long double off = fabsl((long double)got - y[i]);
                    if (!(off <= most)) fail_draw(&d, 0, seed, i);
                    if (d.c.rows.tensor.dtype == POSENC_F32 && off / most > worst)
                        worst = off / most;
                }
            }
        posenc_plan_free(d.plan);
    }
    printf("largest error in float32: %.2f of its bound\n", (double)worst);
    assert_true(worst > 0.05L && worst <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_the_definition),
        cmocka_unit_test(errors_stay_within_their_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
