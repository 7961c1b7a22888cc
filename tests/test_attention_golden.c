/* SPDX-License-Identifier: MIT */
/* Attention with options against stored results and the cases of bug reports. */
#include <posenc/posenc.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/cases.h"
#include "support/half.h"

enum { B = 1, T = 7, HQ = 4, HK = 2, D = 8 };

/* The settings of a stored case, in the order of the file. */
struct settings {
    double causal, window, softcap, sinks, alibi, alibi_scaled, t5, layout, start, queries;
};

struct example {
    posenc_attention_params params;
    posenc_alibi_params alibi;
    posenc_t5_params t5;
    posenc_rope_params rope;
    posenc_plan *plan;
    posenc_tensor q, k, v, out, table, query_rows, key_rows;
    double slopes[HQ];
    float sinks[HQ], q_data[T * HQ * D], k_data[T * HK * D], v_data[T * HK * D];
    float out_data[T * HQ * D], table_data[32 * HQ], query_row_data[T * D], key_row_data[T * D];
};

static void load(const char *name, float *to, size_t count)
{
    double values[T * HQ * D];
    assert_int_equal(test_numbers("golden_attention.txt", "inputs", name, values, count), count);
    for (size_t i = 0; i < count; i++)
        to[i] = (float)values[i];
}

static void make_rows(struct example *e, posenc_tensor *rows, float *data, int64_t start,
                      int64_t tokens)
{
    posenc_positions positions;
    posenc_error error = {0, ""};
    posenc_positions_start(&positions, start);
    posenc_tensor_contiguous(rows, data, POSENC_F32, 1, tokens, 1, D);
    test_ok(posenc_rows(e->plan, &positions, rows, &error), &error);
}

static void example_init(struct example *e, const struct settings *s)
{
    const int64_t queries = (int64_t)s->queries, start = (int64_t)s->start;
    memset(e, 0, sizeof(*e));
    posenc_attention_params_init(&e->params);
    load("q", e->q_data, T * HQ * D);
    load("k", e->k_data, T * HK * D);
    load("v", e->v_data, T * HK * D);
    load("sink", e->sinks, HQ);
    load("t5_table", e->table_data, 32 * HQ);
    assert_int_equal(test_numbers("golden_attention.txt", "inputs", "alibi_slopes", e->slopes, HQ),
                     HQ);
    posenc_tensor_contiguous(&e->q, e->q_data + (T - queries) * HQ * D, POSENC_F32, B, queries, HQ,
                             D);
    posenc_tensor_contiguous(&e->k, e->k_data, POSENC_F32, B, T, HK, D);
    posenc_tensor_contiguous(&e->v, e->v_data, POSENC_F32, B, T, HK, D);
    posenc_tensor_contiguous(&e->out, e->out_data, POSENC_F32, B, queries, HQ, D);
    posenc_tensor_contiguous(&e->table, e->table_data, POSENC_F32, 1, 32, 1, HQ);
    if (s->layout > 0) {
        e->rope = test_params((int32_t)s->layout, D, D);
        e->plan = test_plan(&e->rope);
        make_rows(e, &e->query_rows, e->query_row_data, start + T - queries, queries);
        make_rows(e, &e->key_rows, e->key_row_data, start, T);
    }
}

static void example_options(struct example *e, const struct settings *s)
{
    posenc_attention_params *p = &e->params;
    double scale;
    assert_int_equal(test_numbers("golden_attention.txt", "inputs", "scale", &scale, 1), 1);
    p->scale = scale;
    p->causal = (int32_t)s->causal;
    p->softcap = s->softcap;
    if (s->window > 0) { /* causal: so many keys; otherwise so many on each side */
        p->window_left = (int64_t)s->window + !p->causal;
        p->window_right = (int64_t)s->window + 1;
    }
    if (s->sinks > 0)
        p->sinks = e->sinks;
    if (s->alibi > 0) {
        posenc_alibi_params_init(&e->alibi);
        e->alibi.form = s->causal > 0 ? POSENC_ALIBI_DISTANCE : POSENC_ALIBI_ABS;
        e->alibi.slopes = e->slopes;
        e->alibi.scale = s->alibi_scaled > 0 ? scale : 1;
        p->alibi = &e->alibi;
    }
    if (s->t5 > 0) {
        posenc_t5_params_init(&e->t5);
        e->t5.bidirectional = !p->causal;
        p->scale = 1; /* T5 does not divide */
        p->t5 = &e->t5;
        p->t5_table = &e->table;
    }
    if (s->layout > 0) {
        p->rope = e->plan;
        p->query_rows = &e->query_rows;
        p->key_rows = &e->key_rows;
    }
}

/* Values below 1 of seven keys: a few roundings of 2^-24. */
static void stored_results_are_met(void **state)
{
    size_t n = 0;
    char id[64];
    (void)state;
    for (; test_number_id("golden_attention.txt", "settings", n, id, sizeof(id)); n++) {
        static struct example e;
        struct settings s;
        double expected[T * HQ * D], worst = 0;
        posenc_error error = {0, ""};
        assert_int_equal(
            test_numbers("golden_attention.txt", id, "settings", (double *)&s, 10), 10);
        example_init(&e, &s);
        example_options(&e, &s);
        test_ok(posenc_attention(&e.params, &e.q, &e.k, &e.v, &e.out, &error), &error);
        size_t count = test_numbers("golden_attention.txt", id, "out", expected, T * HQ * D);
        assert_int_equal(count, (size_t)s.queries * HQ * D);
        for (size_t i = 0; i < count; i++)
            worst = fmax(worst, fabs(e.out_data[i] - expected[i]));
        if (!(worst < 4e-7))
            fail_msg("%s: off by %g", id, worst);
        posenc_plan_free(e.plan);
    }
    assert_int_equal(n, 15);
}

/* A stored view [1][tokens][heads][channels], if the case has it; NULL otherwise. */
static posenc_tensor *stored_view(posenc_tensor *t, float *data, const char *id, const char *name,
                                  int64_t tokens, int64_t heads, int64_t channels)
{
    double values[256];
    size_t count = (size_t)(tokens * heads * channels);
    assert_true(count <= 256);
    assert_int_equal(test_numbers("attention_deberta.txt", id, name, values, 256), count);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)values[i];
    posenc_tensor_contiguous(t, data, POSENC_F32, 1, tokens, heads, channels);
    return t;
}

/* transformers' own run in float32: which row of the position tables a query and a key meet. */
static void deberta_is_that_of_transformers(void **state)
{
    size_t n = 0;
    char id[64];
    (void)state;
    for (; test_number_id("attention_deberta.txt", "shape", n, id, sizeof(id)); n++) {
        static float data[6][256];
        double shape[5], expected[256];
        posenc_tensor q, k, v, keys, queries, out;
        posenc_attention_params params;
        posenc_attention_deberta deberta = {.struct_size = sizeof(deberta)};
        posenc_error error = {0, ""};
        assert_int_equal(test_numbers("attention_deberta.txt", id, "shape", shape, 5), 5);
        int64_t tokens = (int64_t)shape[0], heads = (int64_t)shape[1], d = (int64_t)shape[2];
        deberta.buckets = (int32_t)shape[3];
        deberta.max_distance = (int64_t)shape[4];
        stored_view(&q, data[0], id, "q", tokens, heads, d);
        stored_view(&k, data[1], id, "k", tokens, heads, d);
        stored_view(&v, data[2], id, "v", tokens, heads, d);
        if (strstr(id, "c2p"))
            deberta.position_keys = stored_view(&keys, data[3], id, "position_keys",
                                                2 * deberta.buckets, heads, d);
        if (strstr(id, "p2c"))
            deberta.position_queries = stored_view(&queries, data[4], id, "position_queries",
                                                   2 * deberta.buckets, heads, d);
        posenc_tensor_contiguous(&out, data[5], POSENC_F32, 1, tokens, heads, d);
        posenc_attention_params_init(&params);
        params.deberta = &deberta;
        test_ok(posenc_attention(&params, &q, &k, &v, &out, &error), &error);
        size_t count = test_numbers("attention_deberta.txt", id, "out", expected, 256);
        assert_int_equal(count, tokens * heads * d);
        for (size_t i = 0; i < count; i++)
            if (!(fabs(data[5][i] - expected[i]) < 3e-6))
                fail_msg("%s out[%zu]: %g instead of %g", id, i, (double)data[5][i], expected[i]);
    }
    assert_int_equal(n, 3);
}

static void load_case(const char *id, const char *name, int rows, float *to)
{
    for (int i = 0; i < rows; i++) {
        char row[64];
        snprintf(row, sizeof(row), "%s.%d", name, i);
        assert_int_equal(case_floats(id, row, to + 2 * i, 2), 2);
    }
}

/* q, k, v of two or three tokens with two channels; out is checked against expected.0, .1. */
static void run_case(const char *id, posenc_attention_params *params)
{
    float q[4], k[6], v[6], out[4];
    posenc_tensor tq, tk, tv, to;
    posenc_error error = {0, ""};
    load_case(id, "input.q", 2, q);
    load_case(id, "input.k", 3, k);
    load_case(id, "input.v", 3, v);
    posenc_tensor_contiguous(&tq, q, POSENC_F32, 1, 2, 1, 2);
    posenc_tensor_contiguous(&tk, k, POSENC_F32, 1, 3, 1, 2);
    posenc_tensor_contiguous(&tv, v, POSENC_F32, 1, 3, 1, 2);
    posenc_tensor_contiguous(&to, out, POSENC_F32, 1, 2, 1, 2);
    params->scale = case_number(id, "parameters.scale");
    test_ok(posenc_attention(params, &tq, &tk, &tv, &to, &error), &error);
    case_check(id, "expected.0", out, 1e-6);
    case_check(id, "expected.1", out + 2, 1e-6);
    if (strcmp(id, "B50-a") == 0)
        assert_true(!signbit(out[0]) && !signbit(out[1]));
}

/* B50-a: a mask of 0 and 1 as a bias; a row without keys is zeros. */
static void masked_rows_are_zero(void **state)
{
    static const int32_t dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    posenc_attention_params params;
    (void)state;
    for (int d = 0; d < 3; d++) {
        float mask[6];
        uint32_t bias[6];
        posenc_tensor tensor;
        assert_int_equal(case_floats("B50-a", "input.mask.0", mask, 3), 3);
        assert_int_equal(case_floats("B50-a", "input.mask.1", mask + 3, 3), 3);
        for (int i = 0; i < 6; i++)
            test_store(bias, dtypes[d], i, mask[i] > 0 ? 0 : -(double)INFINITY);
        posenc_tensor_contiguous(&tensor, bias, dtypes[d], 1, 2, 1, 3);
        posenc_attention_params_init(&params);
        params.bias = &tensor;
        run_case("B50-a", &params);
    }
}

/* B50-b: the query stands past the cached keys, for the mask and for ALiBi; so in every form that
 * counts from the query or the key. */
static void cached_keys_count_for_alibi(void **state)
{
    static const int32_t forms[] = {POSENC_ALIBI_DISTANCE, POSENC_ALIBI_KEY, POSENC_ALIBI_LAST,
                                    POSENC_ALIBI_ABS};
    const double slope = case_number("B50-b", "parameters.slope");
    (void)state;
    for (int i = 0; i < 4; i++) {
        posenc_attention_params params;
        posenc_alibi_params alibi;
        posenc_attention_params_init(&params);
        posenc_alibi_params_init(&alibi);
        alibi.form = forms[i];
        alibi.slopes = &slope;
        params.causal = 1;
        params.alibi = &alibi;
        run_case("B50-b", &params);
        params.align = POSENC_ALIGN_OFFSET;
        params.query_offset = (int64_t)case_number("B50-b", "parameters.past_keys");
        run_case("B50-b", &params);
    }
}

/* B34-a: the bias of a cache, read back from equal scores: weights are exp of it over the sum. */
static void alibi_reaches_over_the_cache(void **state)
{
    const double slope = case_number("B34-a", "parameters.slope");
    (void)state;
    for (int queries = 1; queries <= 2; queries++) {
        float zero[10] = {0}, out[2], weights[10];
        int64_t rows[2] = {0, 1};
        posenc_tensor q, k, o, w;
        posenc_attention_params params;
        posenc_alibi_params alibi;
        posenc_error error = {0, ""};
        posenc_attention_params_init(&params);
        posenc_alibi_params_init(&alibi);
        alibi.form = POSENC_ALIBI_DISTANCE;
        alibi.slopes = &slope;
        params.causal = 1;
        params.alibi = &alibi;
        params.weights = &w;
        params.weight_rows = rows;
        posenc_tensor_contiguous(&q, zero, POSENC_F32, 1, queries, 1, 1);
        posenc_tensor_contiguous(&k, zero + 2, POSENC_F32, 1, 5, 1, 1);
        posenc_tensor_contiguous(&o, out, POSENC_F32, 1, queries, 1, 1);
        posenc_tensor_contiguous(&w, weights, POSENC_F32, 1, queries, 1, 5);
        test_ok(posenc_attention(&params, &q, &k, &k, &o, &error), &error);
        for (int i = 0; i < queries; i++) {
            int last = 5 - queries + i;
            for (int j = 0; j < 5; j++) {
                double ratio = weights[5 * i + j] / (double)weights[5 * i + last];
                if (j > last)
                    assert_true(weights[5 * i + j] == 0);
                else
                    assert_true(fabs(ratio - exp(slope * (j - last))) < 1e-6);
            }
        }
    }
}

/* B48: subnormal values and weights of bf16, f16 and f32 come through as they are. */
static void subnormals_survive(void **state)
{
    static const int32_t dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    static const double small[] = {1e-40, 0x1p-24, 0x1p-133};
    (void)state;
    for (int d = 0; d < 3; d++) {
        float q[3] = {0}, k[3] = {0};
        uint32_t v[24], out[8];
        posenc_tensor tq, tk, tv, to;
        posenc_attention_params params;
        posenc_error error = {0, ""};
        for (int i = 0; i < 24; i++)
            test_store(v, dtypes[d], i, small[d]);
        posenc_attention_params_init(&params);
        posenc_tensor_contiguous(&tq, q, POSENC_F32, 1, 1, 1, 1);
        posenc_tensor_contiguous(&tk, k, POSENC_F32, 1, 3, 1, 1);
        posenc_tensor_contiguous(&tv, v, dtypes[d], 1, 3, 1, 8);
        posenc_tensor_contiguous(&to, out, dtypes[d], 1, 1, 1, 8);
        test_ok(posenc_attention(&params, &tq, &tk, &tv, &to, &error), &error);
        for (int i = 0; i < 8; i++)
            assert_true(test_load(out, dtypes[d], i) == test_load(v, dtypes[d], i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_results_are_met),
        cmocka_unit_test(deberta_is_that_of_transformers),
        cmocka_unit_test(masked_rows_are_zero),
        cmocka_unit_test(cached_keys_count_for_alibi),
        cmocka_unit_test(alibi_reaches_over_the_cache),
        cmocka_unit_test(subnormals_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
