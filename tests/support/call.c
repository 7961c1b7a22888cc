/* SPDX-License-Identifier: MIT */
/* Calls with right arguments, and the check that a wrong one is refused whole. */
#include "call.h"

struct memory memory;

static struct memory before;
static posenc_plan *the_plan;

int call_setup(void **state)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, CHANNELS, WIDTH);

    (void)state;
    params.rotary_offset = OFFSET;
    the_plan = test_plan(&params);
    return 0;
}

int call_teardown(void **state)
{
    (void)state;
    posenc_plan_free(the_plan);
    return 0;
}

struct call *fresh(void)
{
    static struct call call;
    struct call *c = &call;

    for (size_t i = 0; i < sizeof memory / sizeof(float); i++) ((float *)&memory)[i] = 0.25f;
    for (int i = 0; i < BATCH * TOKENS + 2; i++) memory.ids[i] = i;
    c->plan = the_plan;
    c->direction = POSENC_FORWARD;
    posenc_positions_start(&c->positions, 5);
    posenc_tensor_contiguous(&c->rows, memory.rows, POSENC_F32, BATCH, TOKENS, 1, WIDTH);
    posenc_tensor_contiguous(&c->q, memory.q, POSENC_F32, BATCH, TOKENS, Q_HEADS, CHANNELS);
    posenc_tensor_contiguous(&c->q_out, memory.q_out, POSENC_F32, BATCH, TOKENS, Q_HEADS, CHANNELS);
    posenc_tensor_contiguous(&c->k, memory.k, POSENC_F32, BATCH, TOKENS, K_HEADS, CHANNELS);
    posenc_tensor_contiguous(&c->k_out, memory.k_out, POSENC_F32, BATCH, TOKENS, K_HEADS, CHANNELS);
    c->positions_arg = &c->positions;
    c->rows_arg = &c->rows;
    c->q_arg = &c->q;
    c->q_out_arg = &c->q_out;
    c->k_arg = &c->k;
    c->k_out_arg = &c->k_out;
    return c;
}

static int32_t run(unsigned function, const struct call *c, posenc_error *error)
{
    switch (function) {
    case ROWS: return posenc_rows(c->plan, c->positions_arg, c->rows_arg, error);
    case ROTATE:
        return posenc_rotate(c->plan, c->direction, c->rows_arg, c->q_arg, c->q_out_arg, c->k_arg,
                             c->k_out_arg, error);
    default:
        return posenc_rope(c->plan, c->direction, c->positions_arg, c->q_arg, c->q_out_arg,
                           c->k_arg, c->k_out_arg, error);
    }
}

void refuse(unsigned functions, const struct call *c, int32_t expected, const char *words)
{
    memcpy(&before, &memory, sizeof memory);
    for (unsigned f = ROWS; f <= ROPE; f *= 2) {
        posenc_error error = {0, ""};
        int32_t status, wanted = expected;

        if (!(functions & f)) continue;
        status = run(f, c, &error);
        if (expected == EITHER) {
            wanted = status == POSENC_ERROR_OVERLAP ? status : POSENC_ERROR_ARGUMENT;
        }
        test_refused(status, wanted, &error, words);
        assert_int_equal(run(f, c, NULL), wanted);
        assert_memory_equal(&memory, &before, sizeof memory);
    }
}

void accept(unsigned functions, const struct call *c)
{
    for (unsigned f = ROWS; f <= ROPE; f *= 2) {
        posenc_error error = {0, ""};

        if (functions & f) test_ok(run(f, c, &error), &error);
    }
}

struct call *with_ids(int32_t kind)
{
    struct call *c = fresh();

    c->positions.kind = kind;
    c->positions.dtype = POSENC_I64;
    c->positions.ids = memory.ids;
    c->positions.stride[0] = kind == POSENC_POSITIONS_IDS ? TOKENS : 1;
    c->positions.stride[1] = 1;
    return c;
}

void refuse_flat(const posenc_plan *plan, const struct flat *f, int32_t expected, const char *words)
{
    posenc_error error = {0, ""};

    memcpy(&before, &memory, sizeof memory);
    test_refused(posenc_rope_flat(plan, f->q, f->k, f->dtype, f->batch, f->tokens, f->q_heads,
                                  f->k_heads, f->start, &error), expected, &error, words);
    assert_int_equal(posenc_rope_flat(plan, f->q, f->k, f->dtype, f->batch, f->tokens, f->q_heads,
                                      f->k_heads, f->start, NULL), expected);
    assert_memory_equal(&memory, &before, sizeof memory);
}
