/* SPDX-License-Identifier: MIT */
/* Append against long double: every stored channel is within the bound of docs/accuracy.md. */
#include "support/half.h"
#include "support/random.h"
#include "support/test.h"
#include "support/truth.h"

#include <math.h>
#include <stdio.h>

enum { HEADS = 3, TOKENS = 5, DIM = 96, ROTARY = 64, OFFSET = 16, PAIRS = ROTARY / 2 };
enum { START = 1000, SIZE = TOKENS * HEADS * DIM };

struct variant {
    int32_t norm, after, weight, plus_one;
    double scale, factor; /* the attention factor; 0: no rotation */
};
static const struct variant variants[] = {
    {POSENC_NORM_NONE, 0, 0, 0, 0, 1},          {POSENC_NORM_NONE, 0, 0, 0, 0.3, 1.25},
    {POSENC_NORM_HEAD, 0, 0, 0, 0, 1},          {POSENC_NORM_HEAD, 0, 1, 0, 0, 1.25},
    {POSENC_NORM_HEAD, 0, 1, 1, 0.7, 0.8},      {POSENC_NORM_HEAD, 1, 0, 0, 0, 1},
    {POSENC_NORM_HEAD, 1, 1, 1, 0.7, 1.25},     {POSENC_NORM_HEAD, 1, 1, 0, 0, 0.8},
    {POSENC_NORM_HEAD, 0, 1, 0, 0, 0},          {POSENC_NORM_PROJECTION, 0, 1, 0, 0, 1.25},
    {POSENC_NORM_PROJECTION, 1, 1, 1, 0, 1.25}, {POSENC_NORM_PROJECTION, 0, 1, 0, 0.5, 0},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static float src[TOKENS][HEADS][DIM], weight[DIM];

/* A call, and what is known of it. */
struct call {
    const struct variant *v;
    posenc_plan *plan;
    double inv_freq[PAIRS];
    int32_t dtype;
    unsigned char stored[SIZE * sizeof(float)];
    float scales[TOKENS * HEADS];
};

static void fill(struct test_random *random)
{
    for (int i = 0; i < SIZE; i++) (&src[0][0][0])[i] = 3 * test_unit(random);
    for (int c = 0; c < DIM; c++) weight[c] = test_unit(random);
}

static void append(struct call *call)
{
    const struct variant *v = call->v;
    static float row_memory[TOKENS * ROTARY];
    posenc_append_params params;
    posenc_tensor from, to, rows, factors;
    posenc_positions positions;
    posenc_cache cache;
    posenc_error error = {0, ""};

    posenc_append_params_init(&params);
    posenc_tensor_contiguous(&from, src, POSENC_F32, 1, TOKENS, HEADS, DIM);
    posenc_tensor_contiguous(&to, call->stored, call->dtype, 1, TOKENS, HEADS, DIM);
    posenc_tensor_contiguous(&factors, weight, POSENC_F32, 1, 1, 1, DIM);
    posenc_cache_plain(&cache, &to);
    if (call->dtype == POSENC_I8)
        posenc_tensor_contiguous(&cache.scales, call->scales, POSENC_F32, 1, TOKENS, HEADS, 1);
    params.norm = v->norm;
    params.norm_after = v->after;
    params.eps = v->norm ? 1e-5 : 0;
    params.weight = v->weight ? &factors : NULL;
    params.weight_plus_one = v->plus_one;
    params.scale = v->scale;
    if (v->factor > 0) {
        posenc_positions_start(&positions, START);
        posenc_tensor_contiguous(&rows, row_memory, POSENC_F32, 1, TOKENS, 1, ROTARY);
        test_ok(posenc_rows(call->plan, &positions, &rows, &error), &error);
        params.rope = call->plan;
        params.rows = &rows;
    }
    test_ok(posenc_cache_append(&params, &from, &cache, &error), &error);
}

/* Split halves of the window turned, the attention factor included. */
static void rotate(const struct call *call, int token, long double *x)
{
    for (int i = 0; i < PAIRS; i++) {
        long double c, s, *p = x + OFFSET + i, *q = p + PAIRS;
        test_cos_sin(START + token, call->inv_freq[i], &c, &s);
        const long double a = *p, b = *q;
        *p = (a * c - b * s) * (long double)call->v->factor;
        *q = (a * s + b * c) * (long double)call->v->factor;
    }
}

/* 1 over the root mean square of head h, or of all heads. */
static long double root_of(const struct variant *v, long double x[HEADS][DIM], int h)
{
    const int all = v->norm == POSENC_NORM_PROJECTION, first = all ? 0 : h;
    const int last = all ? HEADS : h + 1;
    long double squares = 0;

    if (v->norm == POSENC_NORM_NONE) return 1;
    for (int i = first; i < last; i++)
        for (int c = 0; c < DIM; c++) squares += x[i][c] * x[i][c];
    return 1 / sqrtl(squares / ((last - first) * DIM) + 1e-5L);
}

/* Weight and scale of a channel. */
static long double factor_of(const struct variant *v, int c)
{
    const long double w = v->weight ? v->plus_one + (long double)weight[c] : 1;
    return w * (v->scale != 0 ? v->scale : 1);
}

/* In units of 2^-24, for channel c of a result y: before[] is what was turned. */
static long double bound_of(const struct variant *v, const long double *before, int c,
                            long double root, long double y)
{
    const long double chain = v->norm == POSENC_NORM_NONE ? 0
                              : v->norm == POSENC_NORM_HEAD ? DIM / 16 / 2.0L
                                                            : HEADS * DIM / 16 / 2.0L;
    const long double more = (v->scale != 0 ? 2 : 0) + v->plus_one;
    const int turned = v->factor > 0 && c >= OFFSET && c < OFFSET + ROTARY;
    const int pair = c < OFFSET + PAIRS ? c + PAIRS : c - PAIRS;
    const long double larger = v->factor > 1 ? v->factor : 1;

    if (!turned && !v->after) return (chain + 7 + more) * fabsl(y);
    const long double size = fabsl(before[c]) + (turned ? fabsl(before[pair]) : 0);
    if (!v->after) return (chain + 10 + more) * larger * size;
    const long double smaller = v->factor < 1 ? 1 / v->factor : 1;
    return (turned ? 3 * larger * size * root * fabsl(factor_of(v, c)) : 0) +
           (chain + 7 + 6 * smaller + more) * fabsl(y);
}

/* The largest share of its bound that a channel of a token's heads takes. */
static long double check_token(const struct call *call, int t)
{
    const struct variant *v = call->v;
    long double x[HEADS][DIM], before[HEADS][DIM], root[HEADS], most = 0;

    for (int i = 0; i < HEADS * DIM; i++) x[i / DIM][i % DIM] = src[t][i / DIM][i % DIM];
    memcpy(before, x, sizeof x);
    for (int h = 0; v->after && h < HEADS; h++) rotate(call, t, x[h]);
    for (int h = 0; h < HEADS; h++) root[h] = root_of(v, x, h);
    for (int i = 0; i < HEADS * DIM; i++)
        x[i / DIM][i % DIM] *= root[i / DIM] * factor_of(v, i % DIM);
    if (!v->after) memcpy(before, x, sizeof x);
    for (int h = 0; h < HEADS && !v->after && v->factor > 0; h++) rotate(call, t, x[h]);
    for (int i = 0; i < HEADS * DIM; i++) {
        const int h = i / DIM, c = i % DIM;
        const int64_t at = (t * HEADS + h) * DIM + c;
        long double bound = bound_of(v, before[h], c, root[h], x[h][c]) * 0x1p-24L + 0x1p-149L;
        double stored;
        if (call->dtype == POSENC_I8) {
            const float d = call->scales[t * HEADS + h];
            stored = ((const int8_t *)call->stored)[at] * (double)d;
            bound += d / 2.0L * (1 + 0x1p-15L);
        } else {
            stored = test_load(call->stored, call->dtype, at);
            if (call->dtype != POSENC_F32) bound += test_half_ulp(stored, call->dtype);
        }
        const long double share = fabsl(stored - x[h][c]) / bound;
        most = share > most ? share : most;
    }
    return most;
}

static void test_dtype(int32_t dtype)
{
    struct test_random random = {7};
    static struct call call;
    posenc_error error = {0, ""};

    for (int i = 0; i < VARIANTS; i++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, DIM, ROTARY);
        params.rotary_offset = OFFSET;
        params.attention_factor = variants[i].factor;
        call = (struct call){.v = &variants[i], .plan = test_plan(&params), .dtype = dtype};
        test_ok(posenc_plan_inv_freq(call.plan, call.inv_freq, PAIRS, &error), &error);
        long double most = 0;
        for (int n = 0; n < 20; n++) {
            fill(&random);
            append(&call);
            for (int t = 0; t < TOKENS; t++) {
                const long double share = check_token(&call, t);
                most = share > most ? share : most;
            }
        }
        if (most > 1) fail_msg("variant %d: %Lg of the bound", i, most);
        posenc_plan_free(call.plan);
    }
}

static void test_f32(void **state)
{
    (void)state;
    test_dtype(POSENC_F32);
}

static void test_f16(void **state)
{
    (void)state;
    test_dtype(POSENC_F16);
}

static void test_bf16(void **state)
{
    (void)state;
    test_dtype(POSENC_BF16);
}

static void test_i8(void **state)
{
    (void)state;
    test_dtype(POSENC_I8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),
        cmocka_unit_test(test_f16),
                cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_i8),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
