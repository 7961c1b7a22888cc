/* SPDX-License-Identifier: MIT */
/* Attention with options at its edges: hidden NaN, rows without keys, sizes of logits. */
#include "attention_options.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_functions.h"
#include "attention_support.h"
#include "support/half.h"
#include "support/test.h"

static const int32_t dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16};

/* T of src/attention.h: the figures of its comment, and what holds at the ends. */
static void tanh_is_within_two_ulp(void **state)
{
    const uint32_t step = test_quick() ? 1009 : 101;
    const uint32_t first = posenc_bits32(0x1p-30f), last = posenc_bits32(10.0f);
    const float infinity = posenc_float(0x7f800000u);
    float before = 0;
    (void)state;
    for (uint32_t bits = first; bits < last; bits += step) {
        float x = posenc_float(bits), y = posenc_attention_tanh(x);
        long double truth = tanhl((long double)x);
        float nearest = (float)truth;
        long double ulp = (long double)nextafterf(nearest, 2) - nearest;
        long double error = fabsl(y - truth);
        assert_true(error <= (x < POSENC_TANH_NEAR ? 0.78L : 1.9L) * ulp);
        assert_true(error <= (x < POSENC_TANH_NEAR ? 1.27L : 3.13L) * 0x1p-24L * truth);
        assert_true(y >= before && posenc_attention_tanh(-x) == -y);
        before = y;
    }
    assert_true(posenc_attention_tanh(infinity) == 1 && posenc_attention_tanh(-infinity) == -1);
    assert_true(posenc_attention_tanh(20) == 1 && posenc_attention_tanh(0x1p-149f) == 0x1p-149f);
    assert_true(isnan(posenc_attention_tanh(posenc_float(0x7fc00000u))));
    assert_true(posenc_bits32(posenc_attention_tanh(-0.0f)) == 0x80000000u);
    assert_true(posenc_bits32(posenc_attention_tanh(0.0f)) == 0);
}

/* One query that sees one key has its value: in all widths and dtypes, whatever the score. */
static void one_key_gives_its_value(void **state)
{
    uint64_t seed = 3;
    (void)state;
    for (int64_t width = 1; width <= 256; width++) {
        float q[256], k[256], v[256], out[256];
        posenc_tensor tq, tk, tv, to;
        posenc_attention_params params;
        posenc_error error = {0, ""};
        int32_t dtype = dtypes[width % 3];
        for (int64_t c = 0; c < width; c++) {
            test_store(q, dtype, c, random_float(&seed));
            test_store(k, dtypes[(width + 1) % 3], c, random_float(&seed));
            test_store(v, dtype, c, random_float(&seed) + 5);
        }
        posenc_attention_params_init(&params);
        params.softcap = width % 2 ? 2 : 0;
        posenc_tensor_contiguous(&tq, q, dtype, 1, 1, 1, width);
        posenc_tensor_contiguous(&tk, k, dtypes[(width + 1) % 3], 1, 1, 1, width);
        posenc_tensor_contiguous(&tv, v, dtype, 1, 1, 1, width);
        posenc_tensor_contiguous(&to, out, dtype, 1, 1, 1, width);
        test_ok(posenc_attention(&params, &tq, &tk, &tv, &to, &error), &error);
        assert_memory_equal(out, v, (size_t)width * test_size(dtype));
    }
}

static void scale_tensor(posenc_tensor *t, double by)
{
    for (int64_t n = tensor_count(t), i = 0; i < n; i++)
        test_store(t->data, t->dtype, i, by * test_load(t->data, t->dtype, i));
}

/* Logits of 1e4 and more, and of subnormals. */
static void large_and_small_logits_are_right(void **state)
{
    static const double by[] = {300, 4000, 0x1p-120, 0x1p-140};
    uint64_t seed = 8;
    char text[200];
    (void)state;
    for (int i = 0; i < (test_quick() ? 16 : 80); i++) {
        struct options o;
        unsigned with = options_choose(&seed) & ~(unsigned)(WITH_HALF | WITH_LONG);
        options_init(&o, with, seed);
        scale_tensor(&o.call.k, by[i % 4]);
        if (i % 4 > 1)
            scale_tensor(&o.call.v, by[i % 4]);
        options_run(&o, POSENC_ISA_DEFAULT);
        long double ratio = truth_worst(&o.call);
        if (!(ratio <= 1))
            fail_msg("call %d, keys times %g, %s: error is %.3Lf of its bound", i, by[i % 4],
                     options_text(with, text, sizeof(text)), ratio);
        options_free(&o);
    }
}

/* Marks the stored keys that some row of a key head sees: seen[(b Tk + token) Hk + head]. */
static void mark_seen(const struct attention_call *c, unsigned char *seen)
{
    const int64_t *k = c->k.shape;
    for (int64_t s = 0; s < truth_sequences(c); s++)
        for (int64_t i = 0; i < truth_queries(c, s); i++)
            for (int64_t h = 0; h < c->q.shape[2]; h++) {
                struct row_truth r;
                row_truth_init(&r, c, s, i, h);
                for (int64_t j = r.begin; j < r.end; j++)
                    if (!r.hidden[j])
                        seen[(r.batch * k[1] + r.first_stored + j) * k[2] + r.key_head] = 1;
                row_truth_free(&r);
            }
}

static void poison(const posenc_tensor *t, int64_t b, int64_t token, int64_t head, double with)
{
    for (int64_t c = 0; c < t->shape[3]; c++)
        test_store(t->data, t->dtype,
                   b * t->stride[0] + token * t->stride[1] + head * t->stride[2] + c, with);
}

static void poison_hidden(const struct attention_call *c, const unsigned char *seen, double with)
{
    const int64_t *k = c->k.shape;
    for (int64_t b = 0; b < k[0]; b++)
        for (int64_t t = 0; t < k[1]; t++)
            for (int64_t h = 0; h < k[2]; h++)
                if (!seen[(b * k[1] + t) * k[2] + h]) {
                    poison(&c->k, b, t, h, with);
                    poison(&c->v, b, t, h, with);
                }
}

/* NaN and infinity in keys and values that no row sees, however hidden, change no bit. */
static void hidden_keys_and_values_never_count(void **state)
{
    uint64_t seed = 21;
    char text[200];
    (void)state;
    for (int i = 0; i < (test_quick() ? 30 : 200); i++) {
        struct options o;
        unsigned with = options_choose(&seed);
        options_init(&o, with, seed);
        size_t bytes = options_result_bytes(&o);
        size_t keys = (size_t)(o.call.k.shape[0] * o.call.k.shape[1] * o.call.k.shape[2]);
        unsigned char *expected = calloc(2 * bytes + keys, 1);
        assert_non_null(expected);
        unsigned char *result = expected + bytes, *seen = result + bytes;
        mark_seen(&o.call, seen);
        options_run(&o, POSENC_ISA_DEFAULT);
        options_results(&o, expected);
        poison_hidden(&o.call, seen, i % 2 ? NAN : (double)INFINITY);
        options_run(&o, POSENC_ISA_DEFAULT);
        options_results(&o, result);
        if (memcmp(expected, result, bytes) != 0)
            fail_msg("call %d, %s: a hidden key counts", i, options_text(with, text, 200));
        free(expected);
        options_free(&o);
    }
}

/* Bits of an element of a result; a NaN must be the canonical one of its dtype. */
static int is_canonical_nan(const posenc_tensor *t, int64_t at)
{
    static const uint32_t nan[] = {0x7fc00000, 0x7e00, 0x7fc0};
    uint32_t bits = 0;
    memcpy(&bits, (const char *)t->data + (size_t)at * test_size(t->dtype), test_size(t->dtype));
    return bits == nan[t->dtype - 1];
}

/* A NaN in one value channel reaches that channel of the rows that see it, and nothing else; where
 * rows are turned back, other channels of these too. */
static void visible_nan_reaches_its_rows_alone(void **state)
{
    uint64_t seed = 33;
    (void)state;
    for (int i = 0; i < (test_quick() ? 30 : 120); i++) {
        struct options o;
        options_init(&o, options_choose(&seed) & ~(unsigned)WITH_LONG, seed);
        const struct attention_call *c = &o.call;
        const int64_t *k = c->k.shape, b = i % 2 ? k[0] - 1 : 0, token = k[1] / 2;
        const int64_t head = i % 2 ? k[2] - 1 : 0;
        const int64_t channel = c->v.shape[3] / 2;
        posenc_tensor before = c->out;
        options_run(&o, POSENC_ISA_DEFAULT);
        before.data = malloc((size_t)tensor_count(&before) * test_size(before.dtype));
        assert_non_null(before.data);
        memcpy(before.data, c->out.data, (size_t)tensor_count(&before) * test_size(before.dtype));
        test_store(c->v.data, c->v.dtype,
                   b * c->v.stride[0] + token * c->v.stride[1] + head * c->v.stride[2] + channel,
                   -(double)NAN);
        options_run(&o, POSENC_ISA_DEFAULT);
        for (int64_t s = 0; s < truth_sequences(c); s++)
            for (int64_t n = 0; n < truth_queries(c, s) * c->q.shape[2]; n++) {
                struct row_truth r;
                row_truth_init(&r, c, s, n / c->q.shape[2], n % c->q.shape[2]);
                int64_t j = token - r.first_stored;
                int sees = r.batch == b && r.key_head == head && j >= r.begin && j < r.end &&
                           !r.hidden[j];
                int64_t at = r.batch * c->out.stride[0] + r.token * c->out.stride[1] +
                             r.head * c->out.stride[2];
                for (int64_t e = 0; e < c->v.shape[3] && !(sees && c->params.output_rows); e++)
                    assert_true(sees && e == channel
                                    ? is_canonical_nan(&c->out, at + e)
                                    : test_same_element(before.data, c->out.data, c->out.dtype,
                                                        at + e));
                row_truth_free(&r);
            }
        free(before.data);
        options_free(&o);
    }
}

/* Every key hidden by the bias: +0 whatever the query, the sink and the rotation back; lse is the
 * sink, or -inf; weights are +0. */
static void rows_without_visible_keys_are_zero(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        struct options o;
        unsigned with = WITH_BIAS | WITH_LSE | WITH_WEIGHTS | (i & 1 ? WITH_SINKS : 0) |
                        (i & 2 ? WITH_OUTPUT_ROWS : 0) | (i & 4 ? WITH_ALIBI : 0) |
                        (i & 8 ? WITH_HALF : 0);
        options_init(&o, with, i);
        for (int64_t n = tensor_count(&o.bias), j = 0; j < n; j++)
            test_store(o.bias.data, o.bias.dtype, j, -(double)INFINITY);
        scale_tensor(&o.call.q, NAN);
        options_run(&o, POSENC_ISA_DEFAULT);
        const char *bytes = o.call.out.data;
        size_t size = (size_t)tensor_count(&o.call.out) * test_size(o.call.out.dtype);
        for (size_t j = 0; j < size; j++)
            assert_int_equal(bytes[j], 0);
        for (int64_t n = tensor_count(&o.weights), j = 0; j < n; j++)
            assert_int_equal(((const uint32_t *)o.weights.data)[j], 0);
        for (int64_t n = tensor_count(&o.lse), j = 0; j < n; j++) {
            float lse = ((const float *)o.lse.data)[j];
            int64_t head = j % o.call.q.shape[2];
            assert_true(lse == (i & 1 ? o.call.params.sinks[head] : -INFINITY));
        }
        options_free(&o);
    }
}

/* A bucket of -inf in the table of T5 hides its keys as a bias of -inf does: NaN in them stays. */
static void terms_of_minus_infinity_hide(void **state)
{
    float q[2] = {1, 1}, k[6] = {1, 2, 1, 2, NAN, NAN}, v[6] = {1, 2, 3, 4, NAN, NAN}, out[2];
    float table[12] = {0}, weights[3];
    int64_t row = 0;
    posenc_tensor tq, tk, tv, to, tt, tw;
    posenc_attention_params params;
    posenc_t5_params t5;
    posenc_error error = {0, ""};
    (void)state;
    posenc_attention_params_init(&params);
    posenc_t5_params_init(&t5);
    t5.num_buckets = 12; /* exact range 3: key - query = 2 has bucket 6 + 2 */
    params.t5 = &t5;
    params.t5_table = &tt;
    params.weights = &tw;
    params.weight_rows = &row;
    params.align = POSENC_ALIGN_TOP_LEFT;
    posenc_tensor_contiguous(&tq, q, POSENC_F32, 1, 1, 1, 2);
    posenc_tensor_contiguous(&tk, k, POSENC_F32, 1, 3, 1, 2);
    posenc_tensor_contiguous(&tv, v, POSENC_F32, 1, 3, 1, 2);
    posenc_tensor_contiguous(&to, out, POSENC_F32, 1, 1, 1, 2);
    posenc_tensor_contiguous(&tt, table, POSENC_F32, 1, 12, 1, 1);
    posenc_tensor_contiguous(&tw, weights, POSENC_F32, 1, 1, 1, 3);
    table[8] = -INFINITY;
    test_ok(posenc_attention(&params, &tq, &tk, &tv, &to, &error), &error);
    assert_true(weights[0] == 0.5f && weights[1] == 0.5f && weights[2] == 0);
    assert_true(out[0] == 2 && out[1] == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tanh_is_within_two_ulp),
        cmocka_unit_test(one_key_gives_its_value),
        cmocka_unit_test(large_and_small_logits_are_right),
        cmocka_unit_test(hidden_keys_and_values_never_count),
        cmocka_unit_test(visible_nan_reaches_its_rows_alone),
        cmocka_unit_test(rows_without_visible_keys_are_zero),
        cmocka_unit_test(terms_of_minus_infinity_hide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
