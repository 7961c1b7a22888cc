/* SPDX-License-Identifier: MIT */
/* What positions refuse beside plain ids: axes, real ids, lengths, sets. */
#include "support/call.h"

#include <math.h>
#include <stdio.h>

static const int32_t axis_of_pair[WIDTH / 2] = {0, 1, 2, 0};
static const double factors[3] = {1.0, 2.0, 8.0};

static posenc_rope_params params_of(void)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, CHANNELS, WIDTH);

    params.rotary_offset = OFFSET;
    return params;
}

static posenc_plan *three_axes(void)
{
    posenc_rope_params params = params_of();

    params.axes = 3;
    params.axis_of_pair = axis_of_pair;
    return test_plan(&params);
}

static posenc_plan *three_factors(void)
{
    posenc_rope_params params = params_of();

    params.scaling = POSENC_SCALING_LINEAR;
    params.factors = factors;
    params.num_factors = 3;
    return test_plan(&params);
}

static posenc_plan *dynamic(void)
{
    posenc_rope_params params = params_of();

    params.scaling = POSENC_SCALING_DYNAMIC_NTK;
    params.factor = 2;
    params.original_max_position = 64;
    return test_plan(&params);
}

/* A right call with three axes of one token, so that memory.ids holds them. */
static struct call *with_axes(posenc_plan *plan)
{
    struct call *c = with_ids(POSENC_POSITIONS_IDS);

    c->plan = plan;
    c->positions.axes = 3;
    c->positions.stride[0] = 0;
    c->positions.stride[1] = 1;
    c->positions.axis_stride = 2;
    return c;
}

static void test_axes(void **state)
{
    static const int32_t wrong[] = {-1, 2, 4, INT32_MAX, INT32_MIN};
    posenc_plan *plan = three_axes();
    struct call *c;
    char words[64];

    (void)state;
    accept(ROWS | ROPE, with_axes(plan));
    for (int i = 0; i < 5; i++) {
        c = with_axes(plan), c->positions.axes = wrong[i];
        snprintf(words, sizeof words, "positions.axes|%d|3", wrong[i]);
        refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, words);
    }
    c = with_ids(POSENC_POSITIONS_IDS), c->positions.axes = 3;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.axes|3|1"); /* a plan of one axis */
    for (int32_t kind = POSENC_POSITIONS_START; kind <= POSENC_POSITIONS_STARTS; kind++) {
        c = with_ids(kind), c->plan = plan, c->positions.axes = 3;
        refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.axes|IDS");
        c = with_ids(kind), c->plan = plan, c->positions.axes = 1;
        accept(ROWS | ROPE, c);
    }
    c = with_axes(plan), c->positions.axis_stride = INT64_MAX / 2;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "axis_stride");
    c = with_axes(plan), c->positions.axis_stride = INT64_MIN;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "axis_stride");
    c = with_axes(plan), memory.ids[2 * 2 + TOKENS - 1] = INT64_C(1) << 31;
    refuse(ROWS | ROPE, c, POSENC_ERROR_POSITION, "2147483648|token 2");
    c = with_axes(plan), c->positions.reserved2 = 7;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "reserved2|7");
    posenc_plan_free(plan);
}

/* The third axis alone lies in the output. */
static void test_axes_apart(void **state)
{
    posenc_plan *plan = three_axes();
    struct call *c = with_axes(plan);

    (void)state;
    memset(&memory, 0, sizeof memory);
    c->positions.ids = memory.q;
    c->positions.axis_stride = (memory.rows - memory.q) / 4;
    refuse(ROWS, c, POSENC_ERROR_OVERLAP, "positions.ids|rows");
    c->positions.axis_stride = 0;
    accept(ROWS, c);
    posenc_plan_free(plan);
}

static void test_real_ids(void **state)
{
    static const double wrong[] = {0x1p31, -0x1p31 - 1, 1e300, (double)NAN, (double)INFINITY,
                                   -(double)INFINITY};
    static const float table[2 * WIDTH / 2];
    posenc_rope_params params = params_of();
    double *ids = (double *)(void *)memory.ids;
    struct call *c;

    (void)state;
    for (int i = 0; i < 6; i++) {
        c = with_ids(POSENC_POSITIONS_IDS), c->positions.dtype = POSENC_F64;
        for (int t = 0; t < BATCH * TOKENS; t++) ids[t] = 0.5 * t;
        accept(ROWS | ROPE, c);
        ids[BATCH * TOKENS - 1] = wrong[i];
        refuse(ROWS | ROPE, c, POSENC_ERROR_POSITION, "batch row 1, token 2|32-bit");
    }
    params.max_position = 3;
    c->plan = test_plan(&params);
    ids[BATCH * TOKENS - 1] = nextafter(3, 0);
    accept(ROWS, c);
    ids[BATCH * TOKENS - 1] = 3;
    refuse(ROWS | ROPE, c, POSENC_ERROR_POSITION, "3|max_position");
    posenc_plan_free(c->plan);

    params.recipe = POSENC_RECIPE_HF_F32;
    c->plan = test_plan(&params);
    ids[BATCH * TOKENS - 1] = 1;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "POSENC_F64|recipe");
    c->rows.dtype = POSENC_F64, c->positions.dtype = POSENC_I64;
    refuse(ROWS, c, POSENC_ERROR_ARGUMENT, "rows.dtype|POSENC_F64|recipe");
    posenc_plan_free(c->plan);

    params = params_of();
    params.cos_table = params.sin_table = table;
    params.cos_rows = params.sin_rows = 2;
    c = with_ids(POSENC_POSITIONS_IDS), c->positions.dtype = POSENC_F64;
    for (int t = 0; t < BATCH * TOKENS; t++) ids[t] = t % 2;
    c->plan = test_plan(&params);
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "POSENC_F64|tables");
    posenc_plan_free(c->plan);
}

static void test_sets(void **state)
{
    static int32_t sets[BATCH * TOKENS + 1];
    posenc_plan *plan = three_factors(), *one = NULL;
    struct call *c = fresh();
    posenc_rope_params params = params_of();

    (void)state;
    c->plan = plan;
    c->positions.sets = sets;
    c->positions.set_stride[0] = TOKENS;
    c->positions.set_stride[1] = 1;
    sets[BATCH * TOKENS - 1] = 2;
    accept(ROWS | ROPE, c);
    sets[BATCH * TOKENS - 1] = 3;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.sets|batch row 1|token 2|3|0..2");
    sets[BATCH * TOKENS - 1] = -1;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.sets|-1");
    sets[BATCH * TOKENS - 1] = 1;
    c->positions.set_stride[1] = INT64_MAX;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "set_stride");
    c->positions.set_stride[1] = 1;
    c->positions.sets = (const int32_t *)(const void *)((const char *)sets + 2);
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.sets|aligned");
    memset(memory.rows, 0, sizeof memory.rows);
    memset(memory.q_out, 0, sizeof memory.q_out);
    c->positions.sets = (const int32_t *)(const void *)memory.rows;
    refuse(ROWS, c, POSENC_ERROR_OVERLAP, "positions.sets|rows");
    c->positions.sets = (const int32_t *)(const void *)memory.q_out;
    refuse(ROPE, c, POSENC_ERROR_OVERLAP, "positions.sets|q_out");

    one = test_plan(&params);
    c->plan = one;
    c->positions.sets = sets;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.sets|1|0..0");
    posenc_plan_free(one);
    posenc_plan_free(plan);
}

static void test_lengths(void **state)
{
    static int64_t lengths[BATCH] = {9, 100};
    struct call *c = fresh();
    posenc_plan *plan = dynamic();

    (void)state;
    c->positions.length = -5; /* of no interest to this plan, and so are the lengths */
    c->positions.lengths = (const int64_t *)(const void *)((const char *)lengths + 1);
    accept(ROWS | ROPE, c);
    c->plan = plan;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.lengths|aligned");
    c->positions.lengths = NULL;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.length|-5|depend");
    c->positions.length = 0;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.length|0|depend|running length");
    c->positions.length = INT64_MAX;
    accept(ROWS | ROPE, c);
    c->positions.lengths = lengths;
    accept(ROWS | ROPE, c);
    lengths[1] = 0;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.lengths[1]|0|depend");
    lengths[1] = 100;
    c->positions.lengths = memory.ids;
    memory.ids[0] = memory.ids[1] = 70;
    accept(ROWS | ROPE, c);
    memset(memory.rows, 1, sizeof memory.rows);
    c->positions.lengths = (const int64_t *)(const void *)memory.rows;
    refuse(ROWS, c, POSENC_ERROR_OVERLAP, "positions.lengths|rows");
    posenc_plan_free(plan);
}

/* The struct as it was before it had axes: nothing behind it is looked at. */
static void test_first_size(void **state)
{
    struct call *c = with_ids(POSENC_POSITIONS_IDS);

    (void)state;
    memset((char *)&c->positions + offsetof(posenc_positions, axes), 0x5a,
           sizeof(posenc_positions) - offsetof(posenc_positions, axes));
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.");
    c->positions.struct_size = offsetof(posenc_positions, axes);
    accept(ROWS | ROPE, c);
    for (uint32_t more = 4; more < sizeof(posenc_positions) - offsetof(posenc_positions, axes);
         more += 4) {
        c->positions.struct_size = offsetof(posenc_positions, axes) + more; /* no size of ours */
        refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.struct_size");
    }
    c->positions.struct_size = offsetof(posenc_positions, axes) - 4;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions.struct_size");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),       cmocka_unit_test(test_axes_apart),
        cmocka_unit_test(test_real_ids),   cmocka_unit_test(test_sets),
        cmocka_unit_test(test_first_size), cmocka_unit_test(test_lengths),
    };

    return cmocka_run_group_tests(tests, call_setup, call_teardown);
}
