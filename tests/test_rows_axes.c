/* SPDX-License-Identifier: MIT */
/* Rows whose pairs follow several position axes, or whose tokens follow several factors. */
#include "support/cases.h"
#include "support/random.h"

#include <stdio.h>

enum { AXES = 4, BATCH = 2, TOKENS = 83, MOST_PAIRS = 300 };

static int32_t axis_of_pair[MOST_PAIRS];

enum pattern { SECTIONS, INTERLEAVED, RANDOM, PATTERNS };

static void make_axes(enum pattern pattern, int32_t pairs, struct test_random *random)
{
    for (int32_t i = 0; i < pairs; i++) {
        axis_of_pair[i] = pattern == SECTIONS ? i * AXES / pairs
                          : pattern == INTERLEAVED ? i % 3
                                                   : (int32_t)test_below(random, AXES);
    }
}

/* ids[axis][batch][token] of one type: runs, repetitions, jumps, both signs. */
static int64_t ids64[AXES][BATCH][TOKENS];
static int32_t ids32[AXES][BATCH][TOKENS];
static double ids_real[AXES][BATCH][TOKENS];

static void make_ids(struct test_random *random)
{
    for (int a = 0; a < AXES; a++)
        for (int b = 0; b < BATCH; b++) {
            int64_t p = (int64_t)test_below(random, 5000) - 100;

            for (int t = 0; t < TOKENS; t++) {
                uint32_t kind = test_below(random, 12);

                p = kind == 0 ? (int64_t)(int32_t)test_bits(random) : kind == 1 ? p : p + 1;
                if (p > INT32_MAX) p = 0;
                ids64[a][b][t] = p;
                ids32[a][b][t] = (int32_t)p;
                ids_real[a][b][t] = kind == 2 ? (double)p / 2 + 0.25 : (double)p;
            }
        }
}

static posenc_positions positions_of(int32_t dtype, int32_t axes, int axis)
{
    posenc_positions positions;

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = dtype;
    positions.ids = dtype == POSENC_I32 ? (const void *)ids32[axis]
                    : dtype == POSENC_I64 ? (const void *)ids64[axis]
                                          : (const void *)ids_real[axis];
    positions.stride[0] = TOKENS;
    positions.stride[1] = 1;
    positions.axes = axes;
    positions.axis_stride = BATCH * TOKENS;
    return positions;
}

static void rows_of(const posenc_plan *plan, const posenc_positions *positions, int32_t dtype,
                    void *out)
{
    posenc_error error = {0, ""};
    posenc_tensor rows;

    posenc_tensor_contiguous(&rows, out, dtype, BATCH, TOKENS, 1,
                             2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, positions, &rows, &error), &error);
}

/* Each pair has the bits of a plan without axes at the positions of its own axis. */
static void check_pick(posenc_rope_params params, int32_t ids, int32_t dtype)
{
    static double mixed[BATCH * TOKENS * 2 * MOST_PAIRS], plain[BATCH * TOKENS * 2 * MOST_PAIRS];
    posenc_plan *one = test_plan(&params), *several;
    posenc_positions positions = positions_of(ids, AXES, 0);
    size_t r = (size_t)params.rotary_dim, size = dtype == POSENC_F64 ? 8 : 4;

    params.axes = AXES;
    params.axis_of_pair = axis_of_pair;
    several = test_plan(&params);
    memset(mixed, 0x5a, sizeof mixed);
    rows_of(several, &positions, dtype, mixed);
    for (int a = 0; a < AXES; a++) {
        positions = positions_of(ids, 0, a);
        rows_of(one, &positions, dtype, plain);
        for (size_t n = 0; n < BATCH * TOKENS * r; n++) {
            const char *got = (const char *)mixed + n * size;

            if (axis_of_pair[n % r % (r / 2)] != a) continue;
            if (memcmp(got, (const char *)plain + n * size, size) != 0) {
                fail_msg("%s, width %zu, ids %d, rows %d: axis %d, token %zu, value %zu",
                         posenc_isa_name(params.isa), r, ids, dtype, a, n / r, n % r);
            }
        }
    }
    positions = positions_of(ids, 1, 2); /* one id for all axes, as text has it */
    rows_of(several, &positions, dtype, mixed);
    rows_of(one, &positions, dtype, plain);
    assert_memory_equal(mixed, plain, BATCH * TOKENS * r * size);
    posenc_plan_free(one);
    posenc_plan_free(several);
}

static void test_pick(void **state)
{
    static const int32_t widths[] = {2, 26, 64, 128, 2 * MOST_PAIRS};
    struct test_random random = {21};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (size_t k = 0; k < n; k++)
        for (int w = 0; w < 5; w++)
            for (int pattern = 0; pattern < PATTERNS; pattern++) {
                posenc_rope_params params = test_params(POSENC_SPLIT_HALF, widths[w], widths[w]);

                params.isa = isas[k];
                params.attention_factor = 1.25;
                make_axes((enum pattern)pattern, widths[w] / 2, &random);
                make_ids(&random);
                check_pick(params, POSENC_I64, POSENC_F32);
                check_pick(params, POSENC_I32, POSENC_F32);
                check_pick(params, POSENC_F64, POSENC_F32);
                if (k == 0) check_pick(params, POSENC_F64, POSENC_F64);
                params.recipe = POSENC_RECIPE_HF_F32;
                check_pick(params, POSENC_I64, POSENC_F32);
            }
}

/* Rows of a table: each pair reads that of its own axis, in both dtypes and in pieces. */
static void test_tables(void **state)
{
    enum { ROWS = 64, PAIRS = MOST_PAIRS };
    static float cos[ROWS * PAIRS], sin[ROWS * PAIRS];
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 2 * PAIRS, 2 * PAIRS);
    struct test_random random = {8};

    (void)state;
    for (int i = 0; i < ROWS * PAIRS; i++) {
        cos[i] = test_unit(&random);
        sin[i] = test_unit(&random);
    }
    params.cos_table = cos;
    params.sin_table = sin;
    params.cos_rows = params.sin_rows = ROWS;
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        make_axes((enum pattern)pattern, PAIRS, &random);
        for (int a = 0; a < AXES; a++)
            for (int n = 0; n < BATCH * TOKENS; n++)
                ids64[a][n / TOKENS][n % TOKENS] = test_below(&random, ROWS);
        check_pick(params, POSENC_I64, POSENC_F32);
        check_pick(params, POSENC_I64, POSENC_F64);
    }
}

/* Fused, in steps, and one token at a time from the last to the first. */
enum { WIDEST = 1100, HEADS = 2, MOST_VALUES = BATCH * TOKENS * HEADS * WIDEST };

static void rotate_in_steps(const posenc_plan *plan, const posenc_positions *positions,
                            const posenc_tensor *q)
{
    static float memory[BATCH * TOKENS * WIDEST];
    posenc_error error = {0, ""};
    posenc_tensor rows;

    posenc_tensor_contiguous(&rows, memory, POSENC_F32, BATCH, TOKENS, 1, q->shape[3]);
    test_ok(posenc_rows(plan, positions, &rows, &error), &error);
    test_ok(posenc_rotate(plan, POSENC_FORWARD, &rows, q, NULL, NULL, NULL, &error), &error);
}

static void rotate_token_by_token(const posenc_plan *plan, const posenc_positions *positions,
                                  const posenc_tensor *q)
{
    int64_t size = positions->dtype == POSENC_I32 ? 4 : 8;
    posenc_positions one = *positions;
    posenc_error error = {0, ""};
    posenc_tensor token = *q;

    token.shape[1] = 1;
    for (int64_t t = TOKENS; t--;) {
        one.ids = (const char *)positions->ids + t * positions->stride[1] * size;
        one.sets = positions->sets ? positions->sets + t * positions->set_stride[1] : NULL;
        token.data = (float *)q->data + t * q->stride[1];
        test_ok(posenc_rope(plan, POSENC_FORWARD, &one, &token, NULL, NULL, NULL, &error), &error);
    }
}

static void check_fused(posenc_rope_params params, const posenc_positions *positions)
{
    static float before[MOST_VALUES], steps[MOST_VALUES], fused[MOST_VALUES], single[MOST_VALUES];
    struct test_random random = {5};
    posenc_plan *plan = test_plan(&params);
    size_t size = BATCH * TOKENS * HEADS * (size_t)params.rotary_dim * sizeof(float);
    posenc_error error = {0, ""};
    posenc_tensor q;

    for (int i = 0; i < MOST_VALUES; i++) before[i] = test_unit(&random);
    memcpy(steps, before, sizeof before);
    memcpy(fused, before, sizeof before);
    memcpy(single, before, sizeof before);
    posenc_tensor_contiguous(&q, fused, POSENC_F32, BATCH, TOKENS, HEADS, params.rotary_dim);
    test_ok(posenc_rope(plan, POSENC_FORWARD, positions, &q, NULL, NULL, NULL, &error), &error);
    q.data = steps;
    rotate_in_steps(plan, positions, &q);
    q.data = single;
    rotate_token_by_token(plan, positions, &q);
    assert_memory_equal(steps, fused, size);
    assert_memory_equal(single, fused, size);
    assert_memory_not_equal(before, fused, size);
    posenc_plan_free(plan);
}

static void test_fused(void **state)
{
    struct test_random random = {22};
    posenc_rope_params params = test_params(POSENC_ADJACENT, 36, 36);
    posenc_positions positions = positions_of(POSENC_F64, AXES, 0);

    (void)state;
    make_axes(RANDOM, 18, &random);
    make_ids(&random);
    params.axes = AXES;
    params.axis_of_pair = axis_of_pair;
    check_fused(params, &positions);
    positions = positions_of(POSENC_I32, AXES, 0);
    check_fused(params, &positions);
}

/* Heads so wide that the fused call makes their rows in several parts. */
static void test_wide_heads(void **state)
{
    static const int32_t recipes[] = {POSENC_RECIPE_EXACT, POSENC_RECIPE_HF_F32,
                                      POSENC_RECIPE_GGML};
    static int32_t axes[WIDEST / 2];
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, WIDEST, WIDEST);
    posenc_positions positions = positions_of(POSENC_I64, AXES, 0);
    struct test_random random = {25};

    (void)state;
    make_ids(&random);
    for (int i = 0; i < WIDEST / 2; i++) axes[i] = (int32_t)test_below(&random, AXES);
    params.axes = AXES;
    params.axis_of_pair = axes;
    for (int i = 0; i < 3; i++) {
        params.recipe = recipes[i];
        params.scaling = i == 2 ? POSENC_SCALING_LLAMA3 : POSENC_SCALING_NONE;
        params.factor = 8;
        params.original_max_position = 8192;
        params.low_freq_factor = 1;
        params.high_freq_factor = 4;
        check_fused(params, &positions);
    }
    params = test_params(POSENC_SPLIT_HALF, WIDEST, WIDEST);
    params.scaling = POSENC_SCALING_DYNAMIC_NTK;
    params.factor = 2;
    params.original_max_position = 100;
    positions = positions_of(POSENC_F64, 0, 0);
    positions.length = 5000;
    check_fused(params, &positions);
    params.recipe = POSENC_RECIPE_HF_F32;
    positions.dtype = POSENC_I64;
    positions.ids = ids64;
    check_fused(params, &positions);
    params = test_params(POSENC_SPLIT_HALF, WIDEST, WIDEST);
    params.xpos = POSENC_XPOS_QUERIES;
    params.xpos_scale_base = 0x1p26; /* keeps the far positions finite */
    check_fused(params, &positions);
}

/* Each token has the bits of a plan with its own factor alone. */
static void check_sets(posenc_rope_params params, int32_t ids, int32_t dtype)
{
    enum { SETS = 3, R = 90 };
    static const double factors[SETS] = {1.0, 3.0, 8.0};
    static double mixed[BATCH * TOKENS * R], plain[BATCH * TOKENS * R];
    static int32_t sets[TOKENS][BATCH];
    struct test_random random = {23};
    posenc_positions positions = positions_of(ids, 0, 0);
    posenc_plan *several, *one;
    size_t size = dtype == POSENC_F64 ? 8 : 4, row = R * size;

    for (int n = 0; n < BATCH * TOKENS; n++) {
        sets[n % TOKENS][n / TOKENS] = (int32_t)test_below(&random, SETS);
        if (test_below(&random, 2) && n % TOKENS) { /* runs of the same */
            sets[n % TOKENS][n / TOKENS] = sets[n % TOKENS - 1][n / TOKENS];
        }
    }
    params.scaling = POSENC_SCALING_LINEAR;
    params.factors = factors;
    params.num_factors = SETS;
    several = test_plan(&params);
    positions.sets = &sets[0][0];
    positions.set_stride[0] = 1;
    positions.set_stride[1] = BATCH;
    rows_of(several, &positions, dtype, mixed);
    if (dtype == POSENC_F32) {
        posenc_rope_params narrow = params;

        narrow.head_dim = narrow.rotary_dim = 36;
        check_fused(narrow, &positions);
    }
    params.factors = NULL;
    params.num_factors = 0;
    for (int s = 0; s < SETS; s++) {
        params.factor = factors[s];
        one = test_plan(&params);
        positions = positions_of(ids, 0, 0);
        rows_of(one, &positions, dtype, plain);
        for (size_t n = 0; n < BATCH * TOKENS; n++) {
            if (sets[n % TOKENS][n / TOKENS] != s) continue;
            assert_memory_equal((char *)mixed + n * row, (char *)plain + n * row, row);
        }
        if (s == 0) { /* no sets: the first factor */
            rows_of(several, &positions, dtype, mixed + 0);
            assert_memory_equal(mixed, plain, BATCH * TOKENS * row);
            positions.sets = &sets[0][0];
            positions.set_stride[0] = 1;
            positions.set_stride[1] = BATCH;
            rows_of(several, &positions, dtype, mixed);
        }
        posenc_plan_free(one);
    }
    posenc_plan_free(several);
}

static void test_sets(void **state)
{
    struct test_random random = {24};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    make_ids(&random);
    for (size_t k = 0; k < n; k++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 90, 90);

        params.isa = isas[k];
        check_sets(params, POSENC_I64, POSENC_F32);
        check_sets(params, POSENC_F64, POSENC_F32);
        check_sets(params, POSENC_F64, POSENC_F64);
        params.recipe = POSENC_RECIPE_VLLM; /* transformers has one factor, vLLM no past */
        for (int i = 0; i < AXES * BATCH * TOKENS; i++) {
            int32_t *id = &ids32[0][0][0] + i;

            *id = *id < 0 ? -1 - *id : *id;
        }
        check_sets(params, POSENC_I32, POSENC_F32);
    }
}

static void rotate_case(const char *id, const char *map, const char *expected, int32_t isa)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 16, 16);
    double numbers[16], thw[3];
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_plan *plan;
    posenc_tensor q;
    float x[16];

    test_numbers("cases.txt", "B31-a", map, numbers, 16);
    for (int i = 0; i < 8; i++) axis_of_pair[i] = (int32_t)numbers[i];
    params.isa = isa;
    params.axes = 3;
    params.axis_of_pair = axis_of_pair;
    plan = test_plan(&params);
    assert_int_equal(case_floats(id, "input.x", x, 16), 16);
    assert_int_equal(test_numbers("cases.txt", id, "input.positions_t_h_w", thw, 3), 3);
    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_F64;
    positions.ids = thw;
    positions.axes = 3;
    positions.axis_stride = 1;
    posenc_tensor_contiguous(&q, x, POSENC_F32, 1, 1, 1, 16);
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &q, NULL, NULL, NULL, &error), &error);
    case_check(id, expected, x, 2e-6);
    if (thw[0] == thw[1] && thw[1] == thw[2]) {
        posenc_plan *plain = case_plan(POSENC_SPLIT_HALF, 16, 16, isa);
        float y[16];

        case_floats(id, "input.x", y, 16);
        case_rope(plain, y, 1, 1, 1, (int64_t)thw[0]);
        assert_memory_equal(x, y, sizeof x);
        posenc_plan_free(plain);
    }
    posenc_plan_free(plan);
}

static void sectioned_and_interleaved(int32_t isa)
{
    rotate_case("B31-a", "expected.sectioned.axis_of_pair", "expected.sectioned.y", isa);
    rotate_case("B31-a", "expected.interleaved.axis_of_pair", "expected.interleaved.y", isa);
}

static void equal_positions(int32_t isa)
{
    rotate_case("B31-c", "expected.sectioned.axis_of_pair", "expected", isa);
    rotate_case("B31-c", "expected.interleaved.axis_of_pair", "expected", isa);
}

static void test_b31(void **state)
{
    (void)state;
    case_each_isa(sectioned_and_interleaved);
    case_each_isa(equal_positions);
}

static void check_model(const char *id)
{
    double model[2], axes[64], pairs[13], thw[3], expected[13];
    posenc_rope_params params;
    posenc_plan *plan;
    int n = 0;

    test_numbers("golden_axes.txt", id, "model", model, 2);
    params = test_params(POSENC_SPLIT_HALF, (int32_t)model[0], (int32_t)model[0]);
    params.base = model[1];
    params.axes = 3;
    params.axis_of_pair = axis_of_pair;
    for (size_t i = test_numbers("golden_axes.txt", id, "axes", axes, 64); i--;) {
        axis_of_pair[i] = (int32_t)axes[i];
    }
    plan = test_plan(&params);
    test_numbers("golden_axes.txt", id, "pairs", pairs, 13);
    for (; n < 8; n++) {
        posenc_positions positions = {.struct_size = sizeof positions,
                                      .kind = POSENC_POSITIONS_IDS,
                                      .dtype = POSENC_F64,
                                      .ids = thw,
                                      .axes = 3,
                                      .axis_stride = 1};
        posenc_error error = {0, ""};
        posenc_tensor rows;
        float row[128];
        char name[32];

        snprintf(name, sizeof name, "position.%d", n);
        test_numbers("golden_axes.txt", id, name, thw, 3);
        posenc_tensor_contiguous(&rows, row, POSENC_F32, 1, 1, 1, params.rotary_dim);
        test_ok(posenc_rows(plan, &positions, &rows, &error), &error);
        for (int part = 0; part < 2; part++) {
            snprintf(name, sizeof name, part ? "sin.%d" : "cos.%d", n);
            test_numbers("golden_axes.txt", id, name, expected, 13);
            for (int i = 0; i < 13; i++) {
                double got = (double)row[part * params.rotary_dim / 2 + (int)pairs[i]];

                /* The bound, and 2047 x half an ulp of the stored frequency. */
                if (!(fabs(got - expected[i]) <= 0.501 * 0x1p-24 + 2048 * 0x1p-54)) {
                    fail_msg("%s, %s, pair %g: %.9g instead of %.9g", id, name, pairs[i], got,
                             expected[i]);
                }
            }
        }
    }
    posenc_plan_free(plan);
}

static void test_models(void **state)
{
    char id[64];
    size_t n = 0;

    (void)state;
    for (; test_number_id("golden_axes.txt", "model", n, id, sizeof id); n++) check_model(id);
    assert_int_equal(n, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pick), cmocka_unit_test(test_tables), cmocka_unit_test(test_fused),
        cmocka_unit_test(test_sets), cmocka_unit_test(test_b31),    cmocka_unit_test(test_models),
        cmocka_unit_test(test_wide_heads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
