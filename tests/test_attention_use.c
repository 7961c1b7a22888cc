/* SPDX-License-Identifier: MIT */
/* Attention in use: published values, prefill against decoding, splits, threads, geometry. */
#include "attention_support.h"
#include "support/stack.h"
#include "support/test.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Attends some queries of p to its first keys, into the same place of another output. */
static void attend_part(const struct problem *p, posenc_tensor *out, int64_t first, int64_t count,
                        int64_t keys)
{
    posenc_tensor q = tokens_of(&p->q, first, count), o = tokens_of(out, first, count);
    posenc_tensor k = tokens_of(&p->k, 0, keys), v = tokens_of(&p->v, 0, keys);
    posenc_error error = {0};
    if (posenc_attention(&p->params, &q, &k, &v, &o, &error) != POSENC_OK)
        fail_msg("%s", error.text);
}

static posenc_tensor blank_like(const posenc_tensor *t)
{
    posenc_tensor blank = *t;
    blank.data = malloc(tensor_bytes(t));
    assert_non_null(blank.data);
    memset(blank.data, FILL_BYTE, tensor_bytes(t));
    return blank;
}

/* One prefill, in chunks of any size, and token by token over a growing cache: the same rows. */
static void prefill_equals_decoding(void **state)
{
    static const int64_t chunks[] = {1, 2, 7, 33, 64, 300};
    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++) {
        struct problem p;
        if (!posenc_isa_available(isa))
            continue;
        problem_init(&p, (struct shape){1, 1100, 1100, 2, 1, 20, 18, 1}, 11);
        run(&p, isa);
        for (size_t c = 0; c < 6; c++) {
            posenc_tensor out = blank_like(&p.out);
            for (int64_t i = 0; i < 1100; i += chunks[c]) {
                int64_t count = 1100 - i < chunks[c] ? 1100 - i : chunks[c];
                attend_part(&p, &out, i, count, i + count);
            }
            assert_memory_equal(out.data, p.out.data, tensor_bytes(&out));
            free(out.data);
        }
        problem_free(&p);
    }
}

/* Each head and each batch row on its own; key heads shared by a part of their group. */
static void heads_and_batch_rows_are_independent(void **state)
{
    struct problem p;
    (void)state;
    problem_init(&p, (struct shape){3, 9, 40, 12, 4, 40, 50, 1}, 12);
    run(&p, POSENC_ISA_DEFAULT);
    posenc_tensor out = blank_like(&p.out);
    for (int64_t b = 0; b < 3; b++)
        for (int64_t h = 0; h < 12; h++) {
            struct problem one = p;
            posenc_tensor *view[4] = {&one.q, &one.k, &one.v, &out};
            posenc_tensor part[4];
            for (int i = 0; i < 4; i++) {
                part[i] = *view[i];
                part[i].data = element(view[i], b, 0, i == 0 || i == 3 ? h : h / 3);
                part[i].shape[0] = part[i].shape[2] = 1;
            }
            assert_int_equal(posenc_attention(&p.params, &part[0], &part[1], &part[2], &part[3],
                                              NULL), POSENC_OK);
        }
    assert_memory_equal(out.data, p.out.data, tensor_bytes(&out));
    free(out.data);
    problem_free(&p);
}

struct share {
    const struct problem *p;
    posenc_tensor out;
    int64_t first, step;
};

static void *attend_share(void *argument)
{
    struct share *s = argument;
    for (int64_t i = s->first; i < s->p->shape.queries; i += s->step) {
        posenc_tensor q = tokens_of(&s->p->q, i, 1), out = tokens_of(&s->out, i, 1);
        posenc_tensor k = tokens_of(&s->p->k, 0, i + 1), v = tokens_of(&s->p->v, 0, i + 1);
        if (posenc_attention(&s->p->params, &q, &k, &v, &out, NULL) != POSENC_OK)
            return s;
    }
    return NULL;
}

static void eight_threads_give_the_bits_of_one(void **state)
{
    struct problem p;
    struct share share[8];
    pthread_t thread[8];
    (void)state;
    problem_init(&p, (struct shape){1, 150, 150, 4, 2, 64, 32, 1}, 13);
    run(&p, POSENC_ISA_DEFAULT);
    posenc_tensor out = blank_like(&p.out);
    for (int i = 0; i < 8; i++) {
        share[i] = (struct share){&p, out, i, 8};
        assert_int_equal(pthread_create(&thread[i], NULL, attend_share, &share[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
    assert_memory_equal(out.data, p.out.data, tensor_bytes(&out));
    free(out.data);
    problem_free(&p);
}

static void *attend_whole(void *argument)
{
    struct problem *p = argument;
    posenc_attention(&p->params, &p->q, &p->k, &p->v, &p->out, NULL);
    return NULL;
}

static void *attend_cached(void *argument)
{
    struct problem *p = argument;
    posenc_cache k, v;
    posenc_cache_plain(&k, &p->k);
    posenc_cache_plain(&v, &p->v);
    posenc_attention_cached(&p->params, &p->q, &k, &v, &p->out, NULL);
    return NULL;
}

static void a_call_needs_less_than_64_KiB_of_stack(void **state)
{
    static const int64_t widths[][2] = {{64, 64},     {576, 512}, {4096, 4096},
                                        {4096, 1},    {1, 4096},  {128, 128}};
    enum { WIDTHS = sizeof(widths) / sizeof(widths[0]) };
    const size_t nothing = test_stack_of_nothing();
    const size_t most = test_stack_most();
    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++)
        for (size_t i = 0; posenc_isa_available(isa) && i < 2 * WIDTHS; i++) {
            const int64_t *width = widths[i % WIDTHS], heads = width[0] == 128 ? 40 : 1;
            struct problem p;
            problem_init(&p, (struct shape){1, i < WIDTHS ? 1 : 30, 70, heads, heads, width[0],
                                            width[1], 1}, 15);
            p.params.isa = isa;
            p.q.dtype = POSENC_BF16; /* some numbers: such queries are widened on the stack */
            if (heads > 1)
                p.k.dtype = p.v.dtype = POSENC_BF16; /* even tiles, heads side by side */
            size_t bytes = test_stack_of(attend_whole, &p);
            size_t cached = test_stack_of(attend_cached, &p);
            bytes = (bytes > cached ? bytes : cached) - nothing;
            if (bytes >= most)
                fail_msg("%zu bytes of stack, width %lld", bytes, (long long)width[0]);
            problem_free(&p);
        }
}

static float *copy_of(const posenc_tensor *t)
{
    float *copy = malloc(tensor_bytes(t));
    assert_non_null(copy);
    memcpy(copy, t->data, tensor_bytes(t));
    return copy;
}

/* Moves token i of a view to where `order` says. */
static void permute(const posenc_tensor *t, const int *order)
{
    float *copy = copy_of(t);
    int64_t row = t->stride[1];
    for (int64_t i = 0; i < t->shape[1]; i++)
        memcpy(element(t, 0, order[i], 0), copy + i * row, (size_t)row * sizeof(float));
    free(copy);
}

/* The largest difference between token order[i] of a view and token i of `before`. */
static double moved(const posenc_tensor *t, const float *before, const int *order)
{
    double worst = 0;
    for (int64_t i = 0; i < t->shape[1]; i++)
        for (int64_t c = 0; c < t->stride[1]; c++)
            worst = fmax(worst, fabs((double)element(t, 0, order[i], 0)[c] -
                                     before[i * t->stride[1] + c]));
    return worst;
}

static double mean(const float *data, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += data[i];
    return sum / (double)count;
}

/* Without positions, attention does not know the order of its tokens; the causal mask does. */
static void only_the_mask_knows_the_order(void **state)
{
    int order[50];
    (void)state;
    for (int i = 0; i < 50; i++)
        order[i] = i * 19 % 50;
    for (int32_t causal = 0; causal <= 1; causal++) {
        struct problem p;
        problem_init(&p, (struct shape){1, 50, 50, 4, 2, 16, 16, causal}, 14);
        run(&p, POSENC_ISA_DEFAULT);
        float *before = copy_of(&p.out);
        permute(&p.q, order);
        permute(&p.k, order);
        permute(&p.v, order);
        run(&p, POSENC_ISA_DEFAULT);
        double difference = moved(&p.out, before, order);
        int64_t count = tensor_count(&p.out);
        double shift = fabs(mean(p.out.data, count) - mean(before, count));
        if (causal)
            assert_true(difference > 0.1);
        else
            assert_true(difference < 2e-6 && shift < 1e-7);
        free(before);
        problem_free(&p);
    }
}

/* Case B50: masked rows. The choice here is zeros, and only where no key is visible at all. */
static void rows_without_keys_are_zero(void **state)
{
    float q[6] = {1, 0, 1, 0, 1, 0}, k[6] = {1, 0, 0, 1, 1, 1}, v[6] = {1, 2, 3, 4, 5, 6}, out[6];
    posenc_tensor tq, tk, tv, to;
    posenc_attention_params params;
    (void)state;
    posenc_attention_params_init(&params);
    for (params.isa = POSENC_ISA_SCALAR; params.isa <= POSENC_ISA_NEON; params.isa++) {
        if (!posenc_isa_available(params.isa))
            continue;
        posenc_tensor_contiguous(&tq, q, POSENC_F32, 1, 3, 1, 2);
        posenc_tensor_contiguous(&tk, k, POSENC_F32, 1, 2, 1, 2);
        posenc_tensor_contiguous(&tv, v, POSENC_F32, 1, 2, 1, 2);
        posenc_tensor_contiguous(&to, out, POSENC_F32, 1, 3, 1, 2);
        memset(out, FILL_BYTE, sizeof(out));
        params.causal = 1; /* three queries, two keys: query 0 sees none (B50-c) */
        assert_int_equal(posenc_attention(&params, &tq, &tk, &tv, &to, NULL), POSENC_OK);
        assert_true(out[0] == 0 && out[1] == 0 && !signbit(out[0]) && !signbit(out[1]));
        assert_true(out[2] == 1 && out[3] == 2);
        params.causal = 0;
        tk.shape[1] = tv.shape[1] = 0; /* no key at all */
        tk.data = tv.data = NULL;
        memset(out, FILL_BYTE, sizeof(out));
        assert_int_equal(posenc_attention(&params, &tq, &tk, &tv, &to, NULL), POSENC_OK);
        for (int i = 0; i < 6; i++)
            assert_true(out[i] == 0 && !signbit(out[i]));
        tk.shape[1] = tv.shape[1] = 2; /* keys 0 and 2 of three (B50-a, second row) */
        tk.stride[1] = tv.stride[1] = 4;
        tk.data = k;
        tv.data = v;
        assert_int_equal(posenc_attention(&params, &tq, &tk, &tv, &to, NULL), POSENC_OK);
        assert_true(fabsf(out[0] - 3) < 1e-6f && fabsf(out[1] - 4) < 1e-6f);
    }
}

/* Reads the array `name` of the stored values: see tests/data/README.md. */
static float *stored(const char *name, int count)
{
    char word[64];
    int n = 0;
    double x;
    FILE *file = fopen(POSENC_TEST_DATA "/attention.txt", "r");
    float *values = malloc((size_t)count * sizeof(float));
    assert_non_null(file);
    assert_non_null(values);
    while (fscanf(file, "%63s %d", word, &n) == 2 && strcmp(word, name) != 0)
        for (int i = 0; i < n; i++)
            assert_int_equal(fscanf(file, "%lf", &x), 1);
    assert_string_equal(word, name);
    assert_int_equal(n, count);
    for (int i = 0; i < n; i++) {
        assert_int_equal(fscanf(file, "%lf", &x), 1);
        values[i] = (float)x;
    }
    fclose(file);
    return values;
}

static void compare_with_stored(const char *name, int32_t causal, int32_t layout, int64_t offset,
                                int queries)
{
    enum { T = 7, HQ = 4, HK = 2, D = 8 };
    float *q = stored("q", T * HQ * D), *k = stored("k", T * HK * D), *v = stored("v", T * HK * D);
    float *expected = stored(name, queries * HQ * D), out[T * HQ * D];
    struct problem p = {.shape = {1, queries, T, HQ, HK, D, D, causal}};
    posenc_attention_params_init(&p.params);
    p.params.causal = causal;
    if (layout) {
        posenc_plan *plan = NULL;
        assert_int_equal(posenc_plan_create_simple(&plan, layout, D, 10000, NULL), POSENC_OK);
        assert_int_equal(posenc_rope_flat(plan, q, k, POSENC_F32, 1, T, HQ, HK, offset, NULL),
                         POSENC_OK);
        posenc_plan_free(plan);
    }
    posenc_tensor_contiguous(&p.q, q + (T - queries) * HQ * D, POSENC_F32, 1, queries, HQ, D);
    posenc_tensor_contiguous(&p.k, k, POSENC_F32, 1, T, HK, D);
    posenc_tensor_contiguous(&p.v, v, POSENC_F32, 1, T, HK, D);
    posenc_tensor_contiguous(&p.out, out, POSENC_F32, 1, queries, HQ, D);
    run(&p, POSENC_ISA_DEFAULT);
    for (int i = 0; i < queries * HQ * D; i++)
        if (!(fabsf(out[i] - expected[i]) < 6e-7f))
            fail_msg("%s[%d] is %.9g, not %.9g", name, i, (double)out[i], (double)expected[i]);
    free(q);
    free(k);
    free(v);
    free(expected);
}

static void stored_values_are_reached(void **state)
{
    (void)state;
    compare_with_stored("causal_gqa", 1, 0, 0, 7);
    compare_with_stored("full_gqa", 0, 0, 0, 7);
    compare_with_stored("causal_rope_split_half", 1, POSENC_SPLIT_HALF, 0, 7);
    compare_with_stored("causal_rope_adjacent", 1, POSENC_ADJACENT, 0, 7);
    compare_with_stored("causal_rope_split_half_offset1000", 1, POSENC_SPLIT_HALF, 1000, 7);
    compare_with_stored("decode_last2_rope_split_half", 1, POSENC_SPLIT_HALF, 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefill_equals_decoding),
        cmocka_unit_test(heads_and_batch_rows_are_independent),
        cmocka_unit_test(a_call_needs_less_than_64_KiB_of_stack),
        cmocka_unit_test(eight_threads_give_the_bits_of_one),
        cmocka_unit_test(only_the_mask_knows_the_order),
        cmocka_unit_test(rows_without_keys_are_zero),
        cmocka_unit_test(stored_values_are_reached),
    };
    return cmocka_run_group_tests_name("attention in use", tests, NULL, NULL);
}
