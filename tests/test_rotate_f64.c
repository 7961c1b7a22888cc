/* SPDX-License-Identifier: MIT */
/* F64 tensors: against long double, the same bits on every ISA, fused or in steps, and refusals. */
#include "support/guard.h"
#include "support/random.h"
#include "support/test.h"

#include <math.h>

enum { BATCH = 2, TOKENS = 9, Q_HEADS = 3, K_HEADS = 1, CHANNELS = 24, WIDTH = 18, OFFSET = 4 };
enum { ROWS = BATCH * TOKENS * WIDTH, Q = BATCH * TOKENS * Q_HEADS * CHANNELS };
enum { K = BATCH * TOKENS * K_HEADS * CHANNELS };

static const double FACTOR = 1.375;
static const int64_t START = 123456789;

static posenc_plan *plan_of(int32_t layout, int32_t isa)
{
    posenc_rope_params params = test_params(layout, CHANNELS, WIDTH);

    params.rotary_offset = OFFSET;
    params.attention_factor = FACTOR;
    params.isa = isa;
    return test_plan(&params);
}

/* 53 random bits each, so that products do need rounding. */
static void fill(double *x, size_t count, uint32_t seed)
{
    struct test_random random = {seed};

    for (size_t i = 0; i < count; i++)
        x[i] = (double)test_unit(&random) + (double)test_unit(&random) * 0x1p-28;
}

static posenc_tensor view(double *data, int64_t heads, int64_t channels)
{
    posenc_tensor t;

    posenc_tensor_contiguous(&t, data, POSENC_F64, BATCH, TOKENS, heads, channels);
    return t;
}

static void make_rows(const posenc_plan *plan, double *rows)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor t = view(rows, 1, WIDTH);

    posenc_positions_start(&positions, START);
    test_ok(posenc_rows(plan, &positions, &t, &error), &error);
}

/* The bound of the header without its rows, which test_rows has: 3 x 2^-53 x A x (|a| + |b|). */
static void check_value(long double got, long double want, long double size)
{
    if (fabsl(got - want) > 3 * 0x1p-53L * size + 0x1p-1074L)
        fail_msg("%.20Lg instead of %.20Lg, size %Lg", got, want, size);
}

static void check_head(const double *x, const double *y, const double *row, int32_t layout,
                       int32_t direction)
{
    for (int i = 0; i < WIDTH / 2; i++) {
        const int p = OFFSET + (layout == POSENC_ADJACENT ? 2 * i : i);
        const int q = layout == POSENC_ADJACENT ? p + 1 : p + WIDTH / 2;
        long double c = row[i], s = row[WIDTH / 2 + i];
        long double size = FACTOR * (fabsl((long double)x[p]) + fabsl((long double)x[q]));

        if (direction != POSENC_FORWARD) s = -s;
        if (direction == POSENC_INVERSE) c /= FACTOR * FACTOR, s /= FACTOR * FACTOR;
        check_value(y[p], x[p] * c - x[q] * s, size);
        check_value(y[q], x[q] * c + x[p] * s, size);
    }
    for (int i = 0; i < CHANNELS; i++)
        if (i < OFFSET || i >= OFFSET + WIDTH) assert_true(!memcmp(x + i, y + i, sizeof *x));
}

static void test_truth(void **state)
{
    static double x[Q], y[Q], rows[ROWS];
    (void)state;

    fill(x, Q, 1);
    for (int32_t layout = POSENC_ADJACENT; layout <= POSENC_SPLIT_HALF; layout++)
        for (int32_t direction = POSENC_FORWARD; direction <= POSENC_TRANSPOSE; direction++) {
            posenc_error error = {0, ""};
            posenc_plan *plan = plan_of(layout, POSENC_ISA_DEFAULT);
            posenc_tensor in = view(x, Q_HEADS, CHANNELS), out = view(y, Q_HEADS, CHANNELS);
            posenc_tensor r = view(rows, 1, WIDTH);

            make_rows(plan, rows);
            test_ok(posenc_rotate(plan, direction, &r, &in, &out, NULL, NULL, &error), &error);
            for (int h = 0; h < BATCH * TOKENS * Q_HEADS; h++)
                check_head(x + h * CHANNELS, y + h * CHANNELS, rows + h / Q_HEADS * WIDTH, layout,
                           direction);
            posenc_plan_free(plan);
        }
}

/* One way of doing the same work. */
struct way { int fused, in_place, split; };

static void run(const posenc_plan *plan, int32_t direction, const struct way *way, double *q,
                double *k)
{
    static double rows[ROWS], q_in[Q], k_in[K];
    posenc_error error = {0, ""};
    posenc_tensor r = view(rows, 1, WIDTH), qo = view(q, Q_HEADS, CHANNELS);
    posenc_tensor ko = view(k, K_HEADS, CHANNELS), qi = qo, ki = ko;

    if (!way->in_place) {
        memcpy(q_in, q, sizeof q_in), memcpy(k_in, k, sizeof k_in);
        qi.data = q_in, ki.data = k_in;
    }
    make_rows(plan, rows);
    for (int64_t t = 0; t < TOKENS; t += way->split) {
        posenc_tensor *all[5] = {&r, &qi, &qo, &ki, &ko}, part[5];
        posenc_positions positions;

        for (int i = 0; i < 5; i++) {
            part[i] = *all[i];
            part[i].data = (double *)all[i]->data + t * all[i]->stride[1];
            part[i].shape[1] = way->split;
        }
        posenc_positions_start(&positions, START + t);
        if (way->fused)
            test_ok(posenc_rope(plan, direction, &positions, &part[1], &part[2], &part[3], &part[4],
                                &error), &error);
        else
            test_ok(posenc_rotate(plan, direction, &part[0], &part[1], &part[2], &part[3], &part[4],
                                  &error), &error);
    }
}

static void test_equal_bits(void **state)
{
    static const struct way ways[] = {{0, 0, 9}, {1, 0, 9}, {0, 1, 9}, {1, 1, 3}, {0, 1, 1}};
    static double want[Q + K], got[Q + K];
    int32_t isas[TEST_ISAS];
    const size_t count = test_isas(isas);
    (void)state;

    for (int32_t layout = POSENC_ADJACENT; layout <= POSENC_SPLIT_HALF; layout++)
        for (int32_t direction = POSENC_FORWARD; direction <= POSENC_TRANSPOSE; direction++)
            for (size_t i = 0; i < count; i++) {
                posenc_plan *plan = plan_of(layout, isas[i]);

                for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                    fill(got, Q + K, 2);
                    run(plan, direction, &ways[w], got, got + Q);
                    if (!i && !w) memcpy(want, got, sizeof want);
                    assert_memory_equal(got, want, sizeof want);
                }
                posenc_plan_free(plan);
            }
}

/* A wide head goes through the fused call in several stretches of pairs. */
static void test_wide_head(void **state)
{
    enum { WIDE = 1040 };
    static double a[2 * WIDE], b[2 * WIDE], rows[2 * WIDE];
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, WIDE, WIDE);
    posenc_plan *plan = test_plan(&params);
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor t, r;
    (void)state;

    fill(a, 2 * WIDE, 3);
    memcpy(b, a, sizeof b);
    posenc_positions_start(&positions, -5);
    posenc_tensor_contiguous(&t, a, POSENC_F64, 1, 2, 1, WIDE);
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, NULL, NULL, &t, NULL, &error), &error);
    posenc_tensor_contiguous(&r, rows, POSENC_F64, 1, 2, 1, WIDE);
    test_ok(posenc_rows(plan, &positions, &r, &error), &error);
    t.data = b;
    test_ok(posenc_rotate(plan, POSENC_FORWARD, &r, NULL, NULL, &t, NULL, &error), &error);
    assert_memory_equal(a, b, sizeof b);
    posenc_plan_free(plan);
}

/* Nothing beside the view is read or written: its ends are the ends of readable pages. */
static void test_guard_pages(void **state)
{
    struct test_guard guard = test_guard_new((K + 1) * sizeof(double));
    posenc_plan *plan = plan_of(POSENC_SPLIT_HALF, POSENC_ISA_DEFAULT);
    (void)state;

    for (int place = TEST_AT_END; place < TEST_PLACES; place++) {
        posenc_error error = {0, ""};
        posenc_positions positions;
        void *data = test_guard_at(&guard, K * sizeof(double), sizeof(double),
                                   (enum test_place)place);
        posenc_tensor t = view(data, K_HEADS, CHANNELS);

        fill(t.data, K, 4);
        posenc_positions_start(&positions, 0);
        test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, NULL, NULL, &t, NULL, &error),
                &error);
    }
    posenc_plan_free(plan);
    test_guard_free(&guard);
}

struct refusal {
    int32_t rows, q, q_out, k;
    const char *words;
};

static void test_mixed_types(void **state)
{
    static const struct refusal refusals[] = {
        {POSENC_F32, POSENC_F64, POSENC_F64, POSENC_F64, "rows|dtype 1|POSENC_F64"},
        {POSENC_F64, POSENC_F32, POSENC_F32, POSENC_F32, "rows|dtype 6|POSENC_F32"},
        {POSENC_F64, POSENC_F64, POSENC_F32, POSENC_F64, "q_out.dtype is 1|q.dtype is 6"},
        {POSENC_F32, POSENC_F32, POSENC_F64, POSENC_F32, "q_out.dtype is 6|q.dtype is 1"},
        {POSENC_F64, POSENC_F64, POSENC_F64, POSENC_BF16, "k.dtype is 3|q.dtype is 6"},
    };
    static double memory[4][Q], before[4][Q];
    posenc_plan *plan = plan_of(POSENC_SPLIT_HALF, POSENC_ISA_DEFAULT);
    (void)state;

    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *c = &refusals[i];
        posenc_error error = {0, ""};
        posenc_tensor r = view(memory[0], 1, WIDTH), q = view(memory[1], Q_HEADS, CHANNELS);
        posenc_tensor out = view(memory[2], Q_HEADS, CHANNELS);
        posenc_tensor k = view(memory[3], K_HEADS, CHANNELS);

        r.dtype = c->rows, q.dtype = c->q, out.dtype = c->q_out, k.dtype = c->k;
        test_refused(posenc_rotate(plan, POSENC_FORWARD, &r, &q, &out, &k, NULL, &error),
                     POSENC_ERROR_ARGUMENT, &error, c->words);
        assert_memory_equal(memory, before, sizeof memory);
    }
    posenc_plan_free(plan);
}

/* Refused by the plan, with F64 or in this direction. */
static void refused_by(posenc_rope_params *params, int32_t direction, const char *words)
{
    static double memory[Q], before[Q];
    posenc_plan *plan = test_plan(params);
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor q = view(memory, Q_HEADS, CHANNELS);

    posenc_positions_start(&positions, 0);
    positions.length = 5;
    test_refused(posenc_rope(plan, direction, &positions, &q, NULL, NULL, NULL, &error),
                 POSENC_ERROR_ARGUMENT, &error, words);
    assert_memory_equal(memory, before, sizeof memory);
    posenc_plan_free(plan);
}

static void test_plans_that_refuse(void **state)
{
    static const double ones[WIDTH / 2] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, CHANNELS, WIDTH);
    (void)state;

    params.recipe = POSENC_RECIPE_HF_F32;
    refused_by(&params, POSENC_FORWARD, "q.dtype is POSENC_F64|recipe");
    params.recipe = POSENC_RECIPE_EXACT;
    params.xpos = POSENC_XPOS_KEYS;
    refused_by(&params, POSENC_INVERSE, "INVERSE|TRANSPOSE|xpos -1");
    params.xpos = POSENC_XPOS_NONE;
    params.scaling = POSENC_SCALING_LONGROPE;
    params.original_max_position = 100;
    params.short_factors = params.long_factors = ones;
    params.short_attention = 1.25;
    params.long_attention = 1.5;
    refused_by(&params, POSENC_INVERSE, "INVERSE|1.25 or 1.5|length");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),       cmocka_unit_test(test_equal_bits),
        cmocka_unit_test(test_wide_head),   cmocka_unit_test(test_guard_pages),
        cmocka_unit_test(test_mixed_types), cmocka_unit_test(test_plans_that_refuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
