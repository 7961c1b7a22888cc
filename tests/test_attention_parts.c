/* SPDX-License-Identifier: MIT */
/* Attention with options by spans of keys and by single queries: the bits of the whole. */
#include "attention_options.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_support.h"
#include "support/half.h"
#include "support/test.h"

/* The first and the end of the spans that the sequences of a call need. */
static void spans_of(const struct attention_call *c, int64_t *first, int64_t *end)
{
    *first = INT64_MAX;
    *end = 0;
    for (int64_t s = 0; s < truth_sequences(c); s++) {
        struct row_truth r;
        if (!truth_queries(c, s))
            continue;
        row_truth_init(&r, c, s, 0, 0);
        int64_t last = (r.first_key + r.keys + POSENC_ATTENTION_SPAN - 1) / POSENC_ATTENTION_SPAN;
        int64_t begin = r.first_key / POSENC_ATTENTION_SPAN;
        *first = begin < *first ? begin : *first;
        *end = last > *end ? last : *end;
        row_truth_free(&r);
    }
    *end = *end > *first ? *end : *first + 1;
}

/* The call by its spans, `step` of them at a time, from the last to the first, then joined. */
static void run_by_spans(struct options *o, int64_t step)
{
    const struct attention_call *c = &o->call;
    posenc_attention_params sums = c->params;
    posenc_error error = {0, ""};
    posenc_tensor state, out = c->out;
    int64_t first, end, one = c->v.shape[3] + 17;
    spans_of(c, &first, &end);
    options_tensor(o, &state, POSENC_F32, out.shape[0], out.shape[1], out.shape[2],
                   (end - first) * one);
    sums.lse = sums.output_rows = NULL;
    for (int64_t s = first + (end - 1 - first) / step * step; s >= first; s -= step) {
        posenc_tensor part = state;
        part.data = (float *)state.data + (s - first) * one;
        part.shape[3] = (end - s < step ? end - s : step) * one;
        test_ok(posenc_attention_spans(&sums, &c->q, &c->k, &c->v, s, &part, &error), &error);
    }
    memset(out.data, FILL_BYTE, (size_t)tensor_count(&out) * test_size(out.dtype));
    memset(o->lse.data, FILL_BYTE, tensor_bytes(&o->lse));
    test_ok(posenc_attention_join(&c->params, &state, &out, &error), &error);
}

static void spans_joined_have_the_bits_of_the_whole(void **state)
{
    uint64_t seed = 55;
    char text[200];
    (void)state;
    for (int i = 0; i < (test_quick() ? 20 : 120); i++) {
        struct options o;
        unsigned with = options_choose(&seed) & ~(unsigned)WITH_WEIGHTS;
        if (i % 3 == 0)
            with |= WITH_LONG;
        options_init(&o, with, seed);
        size_t bytes = options_result_bytes(&o);
        char *expected = malloc(2 * bytes), *result = expected + bytes;
        assert_non_null(expected);
        options_run(&o, POSENC_ISA_DEFAULT);
        options_results(&o, expected);
        run_by_spans(&o, 1 + i % 2);
        options_results(&o, result);
        if (memcmp(expected, result, bytes) != 0)
            fail_msg("call %d, %s: other bits by spans", i, options_text(with, text, 200));
        free(expected);
        options_free(&o);
    }
}

/* A row of which nothing is visible in any span is zeros after the join too. */
static void hidden_rows_join_to_zero(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct options o;
        options_init(&o, WITH_BIAS | WITH_LSE | (i & 1 ? WITH_SINKS : 0) | (i & 2 ? WITH_LONG : 0),
                     i);
        for (int64_t n = tensor_count(&o.bias), j = 0; j < n; j++)
            test_store(o.bias.data, o.bias.dtype, j, -(double)INFINITY);
        run_by_spans(&o, 1);
        for (int64_t n = tensor_count(&o.call.out), j = 0; j < n; j++)
            assert_int_equal(((const uint32_t *)o.call.out.data)[j], 0);
        for (int64_t n = tensor_count(&o.lse), j = 0; j < n; j++)
            assert_true(((const float *)o.lse.data)[j] ==
                        (i & 1 ? o.call.params.sinks[j % o.call.q.shape[2]] : -INFINITY));
        options_free(&o);
    }
}

/* One token of a view that has the queries' tokens, or that one token stands for all in. */
static const posenc_tensor *token_of(posenc_tensor *part, const posenc_tensor *t, int64_t token)
{
    if (!t)
        return NULL;
    *part = *t;
    if (t->shape[1] > 1)
        part->data = (char *)t->data + (size_t)(token * t->stride[1]) * test_size(t->dtype);
    part->shape[1] = 1;
    return part;
}

/* Query `token` of every sequence by itself, told by an offset where it stands. */
static void run_query(struct options *o, int64_t token)
{
    const struct attention_call *c = &o->call;
    posenc_attention_params p = c->params;
    posenc_tensor q, out, bias, temperature, query_rows, output_rows, lse;
    posenc_error error = {0, ""};
    int64_t offsets[2];
    for (int64_t s = 0; s < truth_sequences(c); s++) {
        struct row_truth r;
        row_truth_init(&r, c, s, token, 0);
        offsets[s] = r.place;
        row_truth_free(&r);
    }
    p.align = POSENC_ALIGN_OFFSET;
    p.query_offset = 0;
    p.query_offsets = offsets;
    p.bias = token_of(&bias, p.bias, token);
    p.temperature = token_of(&temperature, p.temperature, token);
    p.query_rows = token_of(&query_rows, p.query_rows, token);
    p.output_rows = token_of(&output_rows, p.output_rows, token);
    p.lse = token_of(&lse, p.lse, token);
    test_ok(posenc_attention(&p, token_of(&q, &c->q, token), &c->k, &c->v,
                             token_of(&out, &c->out, token), &error),
            &error);
}

static void queries_alone_have_the_bits_of_the_whole(void **state)
{
    uint64_t seed = 77;
    char text[200];
    (void)state;
    for (int i = 0; i < (test_quick() ? 20 : 150); i++) {
        struct options o;
        unsigned with = options_choose(&seed) & ~(unsigned)(WITH_WEIGHTS | WITH_PACKED);
        options_init(&o, with, seed);
        size_t bytes = options_result_bytes(&o);
        char *expected = malloc(2 * bytes), *result = expected + bytes;
        assert_non_null(expected);
        options_run(&o, POSENC_ISA_DEFAULT);
        options_results(&o, expected);
        memset(o.call.out.data, 0, (size_t)tensor_count(&o.call.out) * test_size(o.call.out.dtype));
        for (int64_t token = 0; token < o.call.q.shape[1]; token++)
            run_query(&o, token);
        options_results(&o, result);
        if (memcmp(expected, result, bytes) != 0)
            fail_msg("call %d, %s: other bits alone", i, options_text(with, text, 200));
        free(expected);
        options_free(&o);
    }
}

enum { LEAK_TOKENS = 600, LEAK_WIDTH = 32, LEAK_ALL = LEAK_TOKENS * LEAK_WIDTH };

/* A NaN, or an infinite value, that 8 queries see: by spans it must not stay in the sums that the
 * rows after them take over. */
static void what_a_row_saw_stays_with_it(void **state)
{
    static float q[LEAK_ALL], k[LEAK_ALL], v[LEAK_ALL], whole[LEAK_ALL], joined[LEAK_ALL];
    static float sums[LEAK_TOKENS * (LEAK_WIDTH + 17)];
    static const int tokens[] = {3, 70, 300};
    float *const data[4] = {q, k, v, whole};
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);
    posenc_error error = {0, ""};
    posenc_attention_params params;
    posenc_tensor views[4], spans, out;

    (void)state;
    for (int i = 0; i < LEAK_ALL; i++) {
        q[i] = sinf((float)i * 0.37f);
        k[i] = cosf((float)i * 0.11f);
        v[i] = sinf((float)i * 0.21f);
    }
    for (int i = 0; i < 4; i++)
        posenc_tensor_contiguous(&views[i], data[i], POSENC_F32, 1, LEAK_TOKENS, 1, LEAK_WIDTH);
    posenc_tensor_contiguous(&spans, sums, POSENC_F32, 1, LEAK_TOKENS, 1, LEAK_WIDTH + 17);
    posenc_tensor_contiguous(&out, joined, POSENC_F32, 1, LEAK_TOKENS, 1, LEAK_WIDTH);
    posenc_attention_params_init(&params);
    params.causal = 1;
    params.window_left = 8;
    for (size_t n = 0; n < 9 * count; n++) {
        float *odd = (n % 3 ? v : k) + tokens[n / 3 % 3] * LEAK_WIDTH + 5;
        const float usual = *odd;

        *odd = n % 3 == 1 ? INFINITY : NAN;
        params.isa = POSENC_ISA_SCALAR;
        test_ok(posenc_attention(&params, &views[0], &views[1], &views[2], &views[3], &error),
                &error);
        params.isa = isas[n / 9];
        test_ok(posenc_attention_spans(&params, &views[0], &views[1], &views[2], 0, &spans,
                                       &error), &error);
        test_ok(posenc_attention_join(&params, &spans, &out, &error), &error);
        if (memcmp(joined, whole, sizeof whole))
            fail_msg("isa %d, token %d, kind %d: other bits by spans", (int)isas[n / 9],
                     tokens[n / 3 % 3], (int)(n % 3));
        *odd = usual;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_joined_have_the_bits_of_the_whole),
        cmocka_unit_test(hidden_rows_join_to_zero),
        cmocka_unit_test(queries_alone_have_the_bits_of_the_whole),
        cmocka_unit_test(what_a_row_saw_stays_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
