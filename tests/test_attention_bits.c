/* SPDX-License-Identifier: MIT */
/* Attention tile by tile: the bits of the oracle in every order of memory, between unreadable
 * pages, with any workspace. */
#include "attention_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_support.h"
#include "support/guard.h"
#include "support/half.h"
#include "support/test.h"
#include "support/view.h"

/* q, k, v and out, each in a random order of memory, between guards of its own. */
struct call {
    struct test_view view[4];
    struct test_guard guard[4];
    void *memory[4];
    posenc_attention_params params;
    int64_t queries, heads, key_heads, channels, values;
};

enum { Q, K, V, OUT };

static int64_t pick(struct test_random *random, const int64_t *from, uint32_t count)
{
    return from[test_below(random, count)];
}

static void call_init(struct call *c, int64_t queries, int64_t keys, int64_t channels,
                      int64_t values, struct test_random *random)
{
    static const int64_t groups[] = {1, 2, 3, 4, 5, 4, 17};
    const int64_t batch = 1 + test_below(random, 2);
    c->queries = queries;
    c->channels = channels;
    c->values = values;
    c->key_heads = 1 + test_below(random, 3);
    c->heads = c->key_heads * pick(random, groups, 7);
    for (int i = 0; i < 4; i++) {
        struct test_view *view = &c->view[i];
        int of_keys = i == K || i == V;
        *view = test_view_new((enum test_order)test_below(random, TEST_ORDERS),
                              (int32_t)(1 + test_below(random, 3)), batch,
                              of_keys ? keys : queries, of_keys ? c->key_heads : c->heads,
                              i == V || i == OUT ? values : channels);
        size_t size = (size_t)test_size(view->tensor.dtype);
        c->guard[i] = test_guard_new((size_t)view->elements * size);
        c->memory[i] = test_guard_at(&c->guard[i], (size_t)view->elements * size, size,
                                     (enum test_place)test_below(random, TEST_PLACES));
        test_view_at(view, c->memory[i]);
        test_view_fill(view, c->memory[i], TEST_NAN, 0, view->tensor.shape[3], random);
    }
    posenc_attention_params_init(&c->params);
    c->params.causal = (int32_t)test_below(random, 2);
    c->params.window_left = (int64_t)test_below(random, 3) ? 0 : (int64_t)test_below(random, 100);
    c->params.first_key = test_below(random, 2) ? (int64_t)test_below(random, 3000) : 0;
    c->params.head_map =
        test_below(random, 2) ? POSENC_HEADS_GROUPED : POSENC_HEADS_INTERLEAVED;
}

static void call_free(struct call *c)
{
    for (int i = 0; i < 4; i++)
        test_guard_free(&c->guard[i]);
}

static size_t out_bytes(const struct call *c)
{
    return (size_t)c->view[OUT].elements * (size_t)test_size(c->view[OUT].tensor.dtype);
}

static void call_run(struct call *c, int32_t isa)
{
    posenc_error error = {0, ""};
    c->params.isa = isa;
    memset(c->memory[OUT], FILL_BYTE, out_bytes(c));
    test_ok(posenc_attention(&c->params, &c->view[Q].tensor, &c->view[K].tensor,
                             &c->view[V].tensor, &c->view[OUT].tensor, &error),
            &error);
}

/* No workspace, one of any size and alignment, and the one that is asked for. */
static void call_compare(struct call *c, struct test_random *random)
{
    posenc_error error = {0, ""};
    size_t bytes = out_bytes(c), wanted = 0;
    char *expected = malloc(bytes);
    assert_non_null(expected);
    call_run(c, POSENC_ISA_SCALAR);
    memcpy(expected, c->memory[OUT], bytes);
    test_ok(posenc_attention_workspace(c->queries, c->heads, c->key_heads, c->channels, c->values,
                                       &wanted, &error),
            &error);
    struct test_guard guard = test_guard_new(wanted + 1);
    for (int i = 0; i < 3; i++) {
        size_t size = i == 0 ? 0 : i == 1 ? test_below(random, (uint32_t)wanted + 1) : wanted;
        c->params.workspace = size ? test_guard_at(&guard, size, 1, TEST_AT_END) : NULL;
        c->params.workspace_size = size;
        call_run(c, POSENC_ISA_DEFAULT);
        if (memcmp(expected, c->memory[OUT], bytes) != 0)
            fail_msg("%lld queries, %lld of %lld heads, widths %lld and %lld, workspace of %zu: "
                     "other bits",
                     (long long)c->queries, (long long)c->heads, (long long)c->key_heads,
                     (long long)c->channels, (long long)c->values, size);
    }
    test_guard_free(&guard);
    free(expected);
}

static void every_order_of_memory_has_the_bits_of_the_oracle(void **state)
{
    static const int64_t queries[] = {1, 2, 3, 5, 12, 17, 70, 200};
    static const int64_t widths[] = {1, 3, 16, 20, 33, 64, 80, 128};
    const int calls = test_quick() ? 20 : 150;
    struct test_random random = {11};
    (void)state;
    for (int i = 0; i < calls; i++) {
        struct call c;
        int64_t n = pick(&random, queries, test_quick() ? 6 : 8);
        call_init(&c, n, 1 + test_below(&random, 300), pick(&random, widths, 8),
                  pick(&random, widths, 8), &random);
        call_compare(&c, &random);
        call_free(&c);
    }
}

/* One query, in any order of memory: heads that lie side by side may be read in one piece. */
static void one_query_has_the_bits_of_the_oracle(void **state)
{
    static const int64_t widths[] = {16, 20, 64, 128};
    struct test_random random = {14};
    (void)state;
    for (int i = 0; i < (test_quick() ? 40 : 200); i++) {
        struct call c;
        int64_t width = pick(&random, widths, 4);
        call_init(&c, 1, 1 + test_below(&random, 150), width, width, &random);
        call_compare(&c, &random);
        call_free(&c);
    }
}

/* Heads so wide that the stack holds few rows, or none. */
static void wide_heads_have_the_bits_of_the_oracle(void **state)
{
    static const int64_t widths[] = {500, 1024, 2000, 4095, 4096};
    struct test_random random = {12};
    (void)state;
    for (int i = 0; i < (test_quick() ? 2 : 8); i++) {
        struct call c;
        call_init(&c, 1 + test_below(&random, 14), 1 + test_below(&random, 70),
                  pick(&random, widths, 5), pick(&random, widths, 5), &random);
        call_compare(&c, &random);
        call_free(&c);
    }
}

static char *results_of(struct options *o, int32_t isa)
{
    char *results = malloc(options_result_bytes(o));
    assert_non_null(results);
    options_run(o, isa);
    options_results(o, results);
    return results;
}

/* Mostly one query, of one head for each key head or several: alone, with few options, any. CPUs of
 * AMD take even tiles then. */
static void decoding_has_the_bits_of_the_oracle(void **state)
{
    const unsigned few = WITH_CAUSAL | WITH_WINDOW | WITH_PLACES | WITH_COUNTS | WITH_HALF |
                         WITH_SOFTCAP | WITH_SINKS | WITH_TEMPERATURE | WITH_LSE | WITH_WEIGHTS |
                         WITH_SCALES | WITH_LONG | WITH_HEADS_FIRST | WITH_CHUNK | WITH_KEEP;
    const unsigned masks[] = {WITH_HALF | WITH_HEADS_FIRST, few, ~0u};
    uint64_t seed = 15;
    char text[200];
    (void)state;
    for (int i = 0; i < (test_quick() ? 45 : 300); i++) {
        struct options o;
        const unsigned with = WITH_DECODING | (options_choose(&seed) & masks[i % 3]);
        options_init(&o, with, seed);
        char *expected = results_of(&o, POSENC_ISA_SCALAR);
        char *result = results_of(&o, POSENC_ISA_DEFAULT);
        if (memcmp(expected, result, options_result_bytes(&o)) != 0)
            fail_msg("call %d, %s: other bits", i, options_text(with, text, sizeof(text)));
        free(expected);
        free(result);
        options_free(&o);
    }
}

/* So many keys that they count as far from the caches: rows that overlap, to be small. */
static void far_keys_have_the_bits_of_the_oracle(void **state)
{
    enum { KEYS = 40000, HEADS = 2, WIDTH = 128, STEP = 2, ALL = KEYS * STEP + HEADS * WIDTH };
    static uint16_t stored[2][ALL], out[2][HEADS * WIDTH];
    static float query[HEADS * WIDTH];
    posenc_tensor q, k, v, o;
    posenc_attention_params params;
    posenc_error error = {0, ""};
    struct test_random random = {16};
    (void)state;
    posenc_attention_params_init(&params);
    params.scale = 0.1;
    for (int64_t i = 0; i < HEADS * WIDTH; i++)
        query[i] = test_unit(&random);
    for (int n = 0; n < 4; n++) { /* each dtype, heads side by side or one after the other */
        const int32_t dtype = n % 2 ? POSENC_F16 : POSENC_BF16;
        for (int64_t i = 0; i < 2 * ALL; i++)
            test_store(stored[0], dtype, i, test_unit(&random));
        posenc_tensor_contiguous(&q, query, POSENC_F32, 1, 1, HEADS, WIDTH);
        posenc_tensor_contiguous(&k, stored[0], dtype, 1, KEYS, HEADS, WIDTH);
        posenc_tensor_contiguous(&v, stored[1], dtype, 1, KEYS, HEADS, WIDTH);
        k.stride[1] = v.stride[1] = STEP;
        k.stride[2] = v.stride[2] = n / 2 ? WIDTH : 1;
        for (int i = 0; i < 2; i++) {
            posenc_tensor_contiguous(&o, out[i], dtype, 1, 1, HEADS, WIDTH);
            params.isa = i ? POSENC_ISA_DEFAULT : POSENC_ISA_SCALAR;
            test_ok(posenc_attention(&params, &q, &k, &v, &o, &error), &error);
        }
        assert_memory_equal(out[0], out[1], sizeof(out[0]));
    }
}

/* Keys that lie whole multiples of 2 KiB apart, in both directions, beside other heads or not: many
 * rows fall in one place of a first cache, for which even tiles have an order of their own. */
static void crowded_keys_have_the_bits_of_the_oracle(void **state)
{
    enum { KEYS = 260, MOST = 2048, HEADS = 8, WIDTH = 128, ALL = KEYS * MOST };
    static const int64_t steps[][2] = {{1024, WIDTH}, {2048, WIDTH}, {-1024, WIDTH}, {2048, 130},
                                       {1024, -WIDTH}, {-2048, -200}};
    static uint16_t stored[2][ALL], out[2][HEADS * WIDTH];
    static float query[HEADS * WIDTH];
    struct test_random random = {17};
    posenc_attention_params params;
    posenc_tensor q, o, cached[2];
    posenc_error error = {0, ""};
    (void)state;
    posenc_attention_params_init(&params);
    params.scale = 0.1;
    for (int64_t i = 0; i < HEADS * WIDTH; i++)
        query[i] = test_unit(&random);
    posenc_tensor_contiguous(&q, query, POSENC_F32, 1, 1, HEADS, WIDTH);
    for (int n = 0; n < 6 * 6 * 2; n++) { /* keys and values each, and each dtype */
        const int32_t dtype = n / 36 ? POSENC_F16 : POSENC_BF16;
        for (int64_t i = 0; n % 36 == 0 && i < 2 * ALL; i++)
            test_store(stored[0], dtype, i, test_unit(&random));
        for (int i = 0; i < 2; i++) {
            const int64_t *step = steps[n / (i ? 6 : 1) % 6];
            const int64_t begin = (step[0] < 0 ? (1 - KEYS) * step[0] : 0) +
                                  (step[1] < 0 ? (1 - HEADS) * step[1] : 0);
            posenc_tensor_contiguous(&cached[i], stored[i] + begin, dtype, 1, KEYS, HEADS, WIDTH);
            cached[i].stride[1] = step[0];
            cached[i].stride[2] = step[1];
        }
        for (int i = 0; i < 2; i++) {
            posenc_tensor_contiguous(&o, out[i], dtype, 1, 1, HEADS, WIDTH);
            params.isa = i ? POSENC_ISA_DEFAULT : POSENC_ISA_SCALAR;
            test_ok(posenc_attention(&params, &q, &cached[0], &cached[1], &o, &error), &error);
        }
        assert_memory_equal(out[0], out[1], sizeof(out[0]));
    }
}

/* Every option, in workspaces of every size. */
static void workspaces_never_change_the_bits(void **state)
{
    const int calls = test_quick() ? 30 : 300;
    uint64_t seed = 13;
    struct test_random random = {13};
    struct test_guard guard = test_guard_new(1 << 19);
    char text[200];
    (void)state;
    for (int i = 0; i < calls; i++) {
        struct options o;
        unsigned with = options_choose(&seed) | (i % 2 ? WITH_DECODING : 0u);
        options_init(&o, with, seed);
        size_t bytes = options_result_bytes(&o);
        char *expected = malloc(2 * bytes), *result = expected + bytes;
        assert_non_null(expected);
        options_run(&o, POSENC_ISA_SCALAR);
        options_results(&o, expected);
        size_t size = 1 + test_below(&random, (1 << 19) - 1);
        o.call.params.workspace = test_guard_at(&guard, size, 1, TEST_AT_END);
        o.call.params.workspace_size = size;
        options_run(&o, POSENC_ISA_DEFAULT);
        options_results(&o, result);
        if (memcmp(expected, result, bytes) != 0)
            fail_msg("call %d, %s, workspace of %zu: other bits", i,
                     options_text(with, text, sizeof(text)), size);
        free(expected);
        options_free(&o);
    }
    test_guard_free(&guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_memory_has_the_bits_of_the_oracle),
        cmocka_unit_test(one_query_has_the_bits_of_the_oracle),
        cmocka_unit_test(decoding_has_the_bits_of_the_oracle),
        cmocka_unit_test(far_keys_have_the_bits_of_the_oracle),
        cmocka_unit_test(crowded_keys_have_the_bits_of_the_oracle),
        cmocka_unit_test(wide_heads_have_the_bits_of_the_oracle),
        cmocka_unit_test(workspaces_never_change_the_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
