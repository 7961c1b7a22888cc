/* SPDX-License-Identifier: MIT */
/* Attention over caches of I8: the bits of the float32 keys that they stand for, and the error. */
#include "attention_caches.h"

#include <math.h>
#include <stdio.h>

#include "../src/kernels.h"
#include "attention_support.h"
#include "support/guard.h"
#include "support/test.h"

enum { K = 1, V = 2, MOST = 4096 };

/* How a cache stores integers. */
struct format {
    int64_t groups; /* of a head */
    int32_t scale_dtype;
};

static const struct posenc_kernels *plain(void)
{
    return posenc_kernels_get(POSENC_ISA_SCALAR);
}

/* Every head of a plain tensor becomes what its integers stand for. */
static void round_tensor(const posenc_tensor *t, struct format f)
{
    static int8_t q[MOST];
    static float scales[MOST / 32];
    const size_t groups = (size_t)f.groups, group = (size_t)(t->shape[3] / f.groups);
    for (int64_t b = 0; b < t->shape[0]; b++)
        for (int64_t i = 0; i < t->shape[1]; i++)
            for (int64_t h = 0; h < t->shape[2]; h++) {
                float *head = element(t, b, i, h);
                plain()->quantise(head, groups, group, q, scales, f.scale_dtype);
                plain()->dequantise(q, scales, f.scale_dtype, groups, group, head);
            }
}

/* Rows and scales that end where memory ends. */
struct integers {
    struct test_guard rows, scales;
};

/* The rows of a cache of F32 as integers: again, which changes nothing, or for the first time. */
static struct integers store(posenc_cache *cache, struct format f)
{
    const posenc_tensor from = cache->rows;
    const int64_t *n = from.shape;
    const size_t heads = (size_t)(n[0] * n[1] * n[2]), channels = (size_t)n[3];
    const size_t size = f.scale_dtype == POSENC_F16 ? 2 : 4, groups = (size_t)f.groups;
    const size_t bytes = heads * groups * size;
    struct integers to = {test_guard_new(heads * channels), test_guard_new(bytes)};
    int8_t *q = test_guard_at(&to.rows, heads * channels, 1, TEST_AT_END);
    char *scales = test_guard_at(&to.scales, bytes, size, TEST_AT_END);
    for (size_t i = 0; i < heads; i++)
        plain()->quantise((const float *)from.data + i * channels, groups, channels / groups,
                          q + i * channels, scales + i * groups * size, f.scale_dtype);
    posenc_tensor_contiguous(&cache->rows, q, POSENC_I8, n[0], n[1], n[2], n[3]);
    posenc_tensor_contiguous(&cache->scales, scales, f.scale_dtype, n[0], n[1], n[2], f.groups);
    for (int d = 0; d < 3; d++) {
        cache->rows.stride[d] = from.stride[d];
        cache->scales.stride[d] = from.stride[d] / n[3] * f.groups;
    }
    return to;
}

static void integers_free(struct integers *i)
{
    test_guard_free(&i->rows);
    test_guard_free(&i->scales);
}

static struct format format_of(uint64_t *seed, int64_t channels)
{
    const int64_t groups = channels % 32 == 0 && random_between(seed, 0, 3) ? channels / 32 : 1;
    return (struct format){groups, random_between(seed, 0, 1) ? POSENC_F32 : POSENC_F16};
}

/* The header of keys says how they are stored. */
static void renew_header(struct caches *c)
{
    const posenc_attention_params *p = &c->params;
    const int64_t first = c->header.first_key;
    if (!c->k.header)
        return;
    c->k.header = NULL;
    assert_int_equal(posenc_cache_header_init(&c->header, &c->k,
                                              p->query_rows && !p->key_rows ? p->rope : NULL,
                                              NULL), POSENC_OK);
    c->header.first_key = first;
    c->k.header = &c->header;
}

/* One random call with options over a cache of a kind whose keys, values or both are integers. */
static void compare_call(int32_t kind, unsigned with, int64_t step, int sides, uint64_t seed)
{
    static const char *const kinds[] = {"", "contiguous", "ring", "paged"};
    struct options o;
    struct caches c;
    struct integers k, v;
    char options[200], text[300];
    if (step)
        with &= ~(unsigned)WITH_WEIGHTS;
    options_init(&o, with, seed);
    const struct format of_k = format_of(&seed, o.call.k.shape[3]);
    const struct format of_v = format_of(&seed, o.call.v.shape[3]);
    sides &= (o.call.k.dtype == POSENC_F32 ? K : 0) | (o.call.v.dtype == POSENC_F32 ? V : 0);
    if (sides & K)
        round_tensor(&o.call.k, of_k);
    if (sides & V)
        round_tensor(&o.call.v, of_v);
    caches_init(&c, &o, kind, seed + 1);
    if (sides & K)
        k = store(&c.k, of_k);
    if (sides & V)
        v = store(&c.v, of_v);
    renew_header(&c);
    snprintf(text, sizeof(text), "%s%s%s, groups %d and %d, seed %llu, %s", kinds[kind],
             sides & K ? ", k" : "", sides & V ? ", v" : "", (int)of_k.groups, (int)of_v.groups,
             (unsigned long long)seed, options_text(with, options, sizeof(options)));
    caches_compare(&c, POSENC_ISA_DEFAULT, step, text);
    if (sides & K)
        integers_free(&k);
    if (sides & V)
        integers_free(&v);
    caches_free(&c);
    options_free(&o);
}

/* Each option alone, over each kind, with one scale a head and more. */
static void each_option_has_the_bits_of_float_keys(void **state)
{
    (void)state;
    for (unsigned option = 0; option < OPTION_COUNT; option++)
        for (int i = 0; i < (1u << option == WITH_LONG || test_quick() ? 2 : 8); i++)
            for (int32_t kind = POSENC_CACHE_CONTIGUOUS; kind <= POSENC_CACHE_PAGED; kind++) {
                unsigned with = 1u << option | (i % 2 ? WITH_WEIGHTS | WITH_LSE : WITH_WINDOW);
                compare_call(kind, with | (i % 2 ? 0 : WITH_GROUPS), 0, K | V,
                             1000 * option + (uint64_t)i);
            }
}

static void any_options_have_the_bits_of_float_keys(void **state)
{
    uint64_t seed = 61;
    (void)state;
    for (int i = 0; i < (test_quick() ? 40 : 300); i++)
        for (int32_t kind = POSENC_CACHE_CONTIGUOUS; kind <= POSENC_CACHE_PAGED; kind++) {
            unsigned with = options_choose(&seed);
            compare_call(kind, with | (i % 3 ? WITH_GROUPS : 0), 0, i % 3 + 1, seed);
        }
}

static void spans_have_the_bits_of_float_keys(void **state)
{
    uint64_t seed = 62;
    (void)state;
    for (int i = 0; i < (test_quick() ? 8 : 40); i++)
        for (int32_t kind = POSENC_CACHE_CONTIGUOUS; kind <= POSENC_CACHE_PAGED; kind++) {
            unsigned with = options_choose(&seed) | (i % 2 ? WITH_LONG : 0);
            compare_call(kind, with | (i % 3 ? WITH_GROUPS : 0), 1 + i % 3, K | V, seed);
        }
}

/* A call and two contiguous caches of its keys and values. */
struct pair {
    struct problem p;
    posenc_cache k, v;
    struct integers k_memory, v_memory;
};

/* rounded: the plain call gets what the integers stand for. */
static void pair_init(struct pair *x, struct shape shape, struct format of_k, struct format of_v,
                      int rounded)
{
    problem_init(&x->p, shape, 63);
    if (rounded) {
        round_tensor(&x->p.k, of_k);
        round_tensor(&x->p.v, of_v);
    }
    posenc_cache_plain(&x->k, &x->p.k);
    posenc_cache_plain(&x->v, &x->p.v);
    x->k_memory = store(&x->k, of_k);
    x->v_memory = store(&x->v, of_v);
}

static void pair_free(struct pair *x)
{
    integers_free(&x->k_memory);
    integers_free(&x->v_memory);
    problem_free(&x->p);
}

static void pair_run(struct pair *x)
{
    posenc_error error = {0, ""};
    memset(x->p.out.data, FILL_BYTE, tensor_bytes(&x->p.out));
    x->p.params.isa = POSENC_ISA_DEFAULT;
    test_ok(posenc_attention_cached(&x->p.params, &x->p.q, &x->k, &x->v, &x->p.out, &error),
            &error);
}

static void pair_compare(struct pair *x)
{
    float *expected = malloc(tensor_bytes(&x->p.out));
    assert_non_null(expected);
    run(&x->p, POSENC_ISA_DEFAULT);
    memcpy(expected, x->p.out.data, tensor_bytes(&x->p.out));
    pair_run(x);
    assert_memory_equal(expected, x->p.out.data, tensor_bytes(&x->p.out));
    free(expected);
}

/* Widths up to the widest, one query and many: where no row has room plain C takes over. */
static void wide_heads_have_the_bits_of_float_keys(void **state)
{
    static const int64_t widths[] = {128, 576, 1024, 2048, 4096}, queries[] = {1, 2, 30};
    (void)state;
    for (int i = 0; i < 15; i++)
        for (int64_t per_head = 0; per_head < 2; per_head++) {
            const int64_t width = widths[i / 3];
            const struct format f = {per_head ? 1 : width / 32, per_head ? POSENC_F32 : POSENC_F16};
            struct pair x;
            pair_init(&x, (struct shape){1, queries[i % 3], 70, 2, 1, width, width, 1}, f, f, 1);
            pair_compare(&x);
            pair_free(&x);
        }
}

/* Keys that are turned when they are read, into the same layout and into the other one. */
static void keys_turn_on_their_way(void **state)
{
    static const struct { int64_t channels; int32_t rotary, offset; } widths[] = {
        {64, 64, 0}, {96, 40, 20}, {1280, 1200, 50}};
    (void)state;
    for (int i = 0; i < 24; i++) {
        const int w = i % 3, layout = i / 3 % 2, across = i / 6 % 2, many = i / 12;
        const int64_t n = widths[w].channels, keys = 70;
        const struct format f = {i % 2 ? 1 : n / 32, layout ? POSENC_F32 : POSENC_F16};
        posenc_rope_params rope = test_params(layout ? POSENC_ADJACENT : POSENC_SPLIT_HALF,
                                              (int32_t)n, widths[w].rotary);
        rope.rotary_offset = widths[w].offset;
        if (across)
            rope.out_layout = layout ? POSENC_SPLIT_HALF : POSENC_ADJACENT;
        posenc_plan *plan = test_plan(&rope);
        float *memory = malloc((size_t)(keys * widths[w].rotary) * sizeof(float));
        posenc_tensor rows;
        posenc_positions positions;
        struct pair x;
        assert_non_null(memory);
        pair_init(&x, (struct shape){1, many ? 30 : 1, keys, 2, 1, n, n, 1}, f, f, 1);
        posenc_tensor_contiguous(&rows, memory, POSENC_F32, 1, keys, 1, widths[w].rotary);
        posenc_positions_start(&positions, 5);
        test_ok(posenc_rows(plan, &positions, &rows, NULL), NULL);
        x.p.params.rope = plan;
        x.p.params.key_rows = &rows;
        x.p.params.rotate_from = i % 4 == 3 ? 17 : 0;
        pair_compare(&x);
        pair_free(&x);
        posenc_plan_free(plan);
        free(memory);
    }
}

/* A key or value of NaN counts as the NaN row that it stands for, and only where it is seen. */
static void a_nan_stays_where_it_is(void **state)
{
    const struct format f = {2, POSENC_F16};
    struct pair x;
    (void)state;
    pair_init(&x, (struct shape){1, 3, 70, 2, 1, 64, 64, 1}, f, f, 1);
    ((uint16_t *)x.v.scales.data)[2 * 69 + 1] = 0x7e00;
    for (int c = 32; c < 64; c++)
        element(&x.p.v, 0, 69, 0)[c] = NAN;
    pair_compare(&x);
    const float *out = element(&x.p.out, 0, 2, 0);
    assert_true(isfinite(out[31]) && isnan(out[32]));
    assert_true(isfinite(element(&x.p.out, 0, 1, 0)[32]));
    pair_free(&x);
}

/* The largest magnitude in the channels [c, c + count) of all keys. */
static float largest(const posenc_tensor *t, int64_t c, int64_t count)
{
    float a = 0;
    for (int64_t i = 0; i < t->shape[1]; i++)
        for (int64_t n = c; n < c + count; n++)
            a = fmaxf(a, fabsf(element(t, 0, i, 0)[n]));
    return a;
}

/*
 * Scores move by at most delta = scale sum |q| e, e the error of a channel of a key; the weights of
 * any set of keys by at most tanh(delta / 2), and a result by that times the spread of the values,
 * and by the error of a value. docs/accuracy.md
 */
static void the_error_is_within_its_bound(void **state)
{
    enum { KEYS = 300, WIDTH = 64 };
    const double half = 0.5 * (1 + 0x1p-15), scale = 1 / sqrt(WIDTH);
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct format f = {i % 2 ? 1 : WIDTH / 32, i / 2 ? POSENC_F32 : POSENC_F16};
        struct pair x;
        double worst = 0;
        pair_init(&x, (struct shape){1, 20, KEYS, 1, 1, WIDTH, WIDTH, 1}, f, f, 0);
        float *expected = malloc(tensor_bytes(&x.p.out));
        assert_non_null(expected);
        run(&x.p, POSENC_ISA_DEFAULT);
        memcpy(expected, x.p.out.data, tensor_bytes(&x.p.out));
        pair_run(&x);
        const double d_k = largest(&x.p.k, 0, WIDTH) / 127 * (1 + 0x1p-11);
        const double d_v = largest(&x.p.v, 0, WIDTH) / 127 * (1 + 0x1p-11);
        for (int64_t t = 0; t < 20; t++) {
            double delta = 0;
            for (int c = 0; c < WIDTH; c++)
                delta += scale * fabs((double)element(&x.p.q, 0, t, 0)[c]) * half * d_k;
            for (int c = 0; c < WIDTH; c++) {
                const double v = largest(&x.p.v, c, 1);
                const double bound = 2 * v * tanh(delta / 2) + half * d_v + 1e-5 * v;
                const double error =
                    fabs((double)element(&x.p.out, 0, t, 0)[c] - expected[t * WIDTH + c]);
                assert_true(error <= bound);
                worst = fmax(worst, error / bound);
            }
        }
        assert_true(worst > 0.01); /* the integers were read */
        free(expected);
        pair_free(&x);
    }
}

/* Two keys whose channels are all but equal and are rounded to different integers, and values of 1
 * and -1: the bound of what the keys move is reached but for the 2 % that they do differ by. */
static void the_bound_is_reached(void **state)
{
    enum { WIDTH = 64 };
    const struct format f = {1, POSENC_F32};
    const double delta = (WIDTH - 1) / 128.0 / 2 / sqrt(WIDTH);
    struct pair x;
    float before;
    (void)state;
    problem_init(&x.p, (struct shape){1, 1, 2, 1, 1, WIDTH, WIDTH, 1}, 64);
    for (int c = 0; c < WIDTH; c++) {
        element(&x.p.q, 0, 0, 0)[c] = c > 0;
        for (int i = 0; i < 2; i++) {
            element(&x.p.k, 0, i, 0)[c] =
                c ? ((float)c - 30 + (i ? 0.51f : 0.49f)) / 128 : 127 / 128.0f;
            element(&x.p.v, 0, i, 0)[c] = i ? -1 : 1;
        }
    }
    run(&x.p, POSENC_ISA_DEFAULT);
    before = element(&x.p.out, 0, 0, 0)[0];
    posenc_cache_plain(&x.k, &x.p.k);
    posenc_cache_plain(&x.v, &x.p.v);
    x.k_memory = store(&x.k, f);
    x.v_memory = store(&x.v, f);
    pair_run(&x);
    const double moved = fabs((double)element(&x.p.out, 0, 0, 0)[0] - (double)before);
    assert_true(moved <= 2 * tanh(delta / 2) * (1 + 1e-3));
    assert_true(moved >= 2 * tanh(delta / 2) * 0.97);
    pair_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_has_the_bits_of_float_keys),
        cmocka_unit_test(any_options_have_the_bits_of_float_keys),
        cmocka_unit_test(spans_have_the_bits_of_float_keys),
        cmocka_unit_test(wide_heads_have_the_bits_of_float_keys),
        cmocka_unit_test(keys_turn_on_their_way),
        cmocka_unit_test(a_nan_stays_where_it_is),
        cmocka_unit_test(the_error_is_within_its_bound),
        cmocka_unit_test(the_bound_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
