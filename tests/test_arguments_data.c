/* SPDX-License-Identifier: MIT */
/* Bad tensors and positions of rows, rotate and rope: each argument wrong in each way. */
#include "support/call.h"

#include <stdio.h>

static void test_right_calls(void **state)
{
    struct call *c = fresh();

    (void)state;
    accept(ROWS | ROTATE | ROPE, c);
    c->q_out_arg = c->k_out_arg = NULL;
    accept(ROTATE | ROPE, c);
    c->q_out_arg = &c->q;
    accept(ROTATE | ROPE, c);
    c->k_arg = NULL;
    accept(ROTATE | ROPE, c);
    c->rows.shape[0] = 1;
    accept(ROTATE, c);
}

static void test_pointers_and_enums(void **state)
{
    static const int32_t directions[] = {-1, 3, 99, INT32_MIN, INT32_MAX};
    struct call *c = fresh();
    char words[64];

    (void)state;
    c->plan = NULL;
    refuse(ROWS | ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, "plan|NULL");
    c = fresh(), c->positions_arg = NULL;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|NULL");
    c = fresh(), c->rows_arg = NULL;
    refuse(ROWS | ROTATE, c, POSENC_ERROR_ARGUMENT, "rows|NULL");
    c = fresh(), c->q_arg = NULL;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, "q_out|q is NULL");
    c = fresh(), c->k_arg = NULL;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, "k_out|k is NULL");
    for (int i = 0; i < 5; i++) {
        c = fresh(), c->direction = directions[i];
        snprintf(words, sizeof words, "direction|%d", directions[i]);
        refuse(ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, words);
    }
}

/* One tensor of the call, its name, and the functions that take it. */
struct role { const char *name; size_t offset; unsigned functions; };

static const struct role roles[] = {
    {"rows", offsetof(struct call, rows), ROWS | ROTATE},
    {"q", offsetof(struct call, q), ROTATE | ROPE},
    {"q_out", offsetof(struct call, q_out), ROTATE | ROPE},
    {"k", offsetof(struct call, k), ROTATE | ROPE},
    {"k_out", offsetof(struct call, k_out), ROTATE | ROPE},
};

static posenc_tensor *tensor_of(struct call *c, const struct role *role)
{
    return (posenc_tensor *)((char *)c + role->offset);
}

/* "NAME" and the value, for test_refused. */
static const char *say(const struct role *role, const char *field, int64_t value)
{
    static char words[96];

    snprintf(words, sizeof words, "%s|%s|%lld", role->name, field, (long long)value);
    return words;
}

static void test_tensor_fields(void **state)
{
    static const int32_t dtypes[] = {0, -1, POSENC_I32, POSENC_I64, POSENC_F64, 7, INT32_MAX};
    static const int64_t shapes[] = {-1, INT64_MIN, 77};
    static const int64_t strides[] = {0, 2, -1, INT64_MAX, INT64_MIN};

    (void)state;
    for (size_t r = 0; r < sizeof roles / sizeof *roles; r++) {
        const struct role *role = &roles[r];
        struct call *c = fresh();

        tensor_of(c, role)->data = NULL;
        refuse(role->functions, c, POSENC_ERROR_ARGUMENT, role->name);
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
            unsigned functions = role->functions;

            if (dtypes[i] == POSENC_F64) functions &= ~(unsigned)ROWS; /* which makes those */
            c = fresh(), tensor_of(c, role)->dtype = dtypes[i];
            refuse(functions, c, POSENC_ERROR_ARGUMENT, say(role, "dtype", dtypes[i]));
        }
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            for (int d = 0; d < 4; d++) {
                /* Outputs must match, and channels are fixed; other counts may be free. */
                if (shapes[i] == 77 && (role->offset == offsetof(struct call, rows) && d < 2))
                    continue;
                if (shapes[i] == 77 && d == 2 && (strcmp(role->name, "q") == 0
                                                  || strcmp(role->name, "k") == 0)) continue;
                c = fresh(), tensor_of(c, role)->shape[d] = shapes[i];
                refuse(role->functions, c, EITHER,
                       shapes[i] < 0 ? say(role, "shape", shapes[i]) : "");
            }
        }
        c = fresh(), tensor_of(c, role)->shape[3] = 0;
        refuse(role->functions, c, POSENC_ERROR_ARGUMENT, say(role, "shape", 0));
        for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
            c = fresh(), tensor_of(c, role)->stride[3] = strides[i];
            refuse(role->functions, c, POSENC_ERROR_ARGUMENT, say(role, "stride[3]", strides[i]));
        }
        c = fresh(), tensor_of(c, role)->data = (char *)tensor_of(c, role)->data + 2;
        refuse(role->functions, c, POSENC_ERROR_ARGUMENT, role->name);
    }
}

/* Counts and strides whose product does not fit (B22-c). */
static void test_products(void **state)
{
    static const int64_t huge[] = {INT64_MAX, INT64_C(4611686018427387904), INT64_C(1) << 60,
                                   INT64_C(1) << 58};

    (void)state;
    for (size_t r = 0; r < sizeof roles / sizeof *roles; r++) {
        const struct role *role = &roles[r];

        for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
            for (int d = 0; d < 3; d++) {
                struct call *c = fresh();

                if (d == 2 && r == 0) continue; /* rows have one head */
                tensor_of(c, role)->shape[d] = huge[i];
                refuse(role->functions, c, POSENC_ERROR_ARGUMENT, role->name);
                for (int sign = -1; sign <= 1 && huge[i] > INT64_C(1) << 58; sign += 2) {
                    c = fresh(), tensor_of(c, role)->stride[d] = sign * huge[i];
                    if (tensor_of(c, role)->shape[d] == 1) continue;
                    refuse(role->functions, c, POSENC_ERROR_ARGUMENT, role->name);
                }
            }
        }
    }
}

/* The stride of a dimension with one element is ignored, whatever it says. */
static void test_ignored_strides(void **state)
{
    struct call *c = fresh();

    (void)state;
    c->k.stride[2] = INT64_MIN;
    c->k_out.stride[2] = 0;
    c->rows.stride[2] = INT64_MAX;
    accept(ROWS | ROTATE | ROPE, c);
}

static void test_mismatches(void **state)
{
    struct call *c = fresh();

    (void)state;
    c->rows.dtype = POSENC_F16;
    refuse(ROWS | ROTATE, c, POSENC_ERROR_ARGUMENT, "rows");
    c = fresh(), c->rows.shape[3] = WIDTH - 2;
    refuse(ROWS | ROTATE, c, POSENC_ERROR_ARGUMENT, "rows|6|8");
    c = fresh(), c->rows.shape[2] = 2;
    refuse(ROWS | ROTATE, c, EITHER, "rows|2");
    c = fresh(), c->rows.shape[1] = TOKENS - 1;
    refuse(ROTATE, c, POSENC_ERROR_ARGUMENT, "rows|2|3");
    c = fresh(), c->rows.shape[0] = 3, c->rows.shape[1] = TOKENS;
    refuse(ROTATE, c, POSENC_ERROR_ARGUMENT, "rows|3|2");
    c = fresh(), c->q.shape[3] = c->q_out.shape[3] = CHANNELS - 2;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, "q|shape[3]|14");
    c = fresh(), c->q.shape[3] = c->q_out.shape[3] = WIDTH;
    accept(ROTATE | ROPE, c);
    c = fresh(), c->q_out.shape[3] = WIDTH;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, "q_out|8|16");
    c = fresh(), c->q_out.shape[2] = 1;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, "q_out|1|2");
    c = fresh(), c->k_out.shape[0] = 1;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, "k_out|1|2");
    c = fresh(), c->k.shape[0] = c->k_out.shape[0] = 1;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, "1|2");
    c = fresh(), c->k.shape[1] = c->k_out.shape[1] = 2;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_ARGUMENT, "2|3");
}

/* ---- positions ---- */

static void test_positions_struct(void **state)
{
    static const int32_t kinds[] = {-1, 3, INT32_MAX};
    static const int32_t dtypes[] = {0, POSENC_F32, 7, -1, POSENC_F64};
    struct call *c;
    char words[64];

    (void)state;
    for (int i = 0; i < 3; i++) {
        c = fresh(), c->positions.kind = kinds[i];
        snprintf(words, sizeof words, "positions|kind|%d", kinds[i]);
        refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, words);
    }
    c = fresh(), c->positions.reserved = 1;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|reserved|1");
    c = fresh(), c->positions.struct_size = 0;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|struct_size|0");
    c = fresh(), c->positions.struct_size = 8;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|struct_size|8");
    for (int32_t kind = POSENC_POSITIONS_STARTS; kind <= POSENC_POSITIONS_IDS; kind++) {
        accept(ROWS | ROPE, with_ids(kind));
        c = with_ids(kind), c->positions.ids = NULL;
        refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|ids|NULL");
        for (int i = 0; i < (kind == POSENC_POSITIONS_IDS ? 4 : 5); i++) {
            c = with_ids(kind), c->positions.dtype = dtypes[i];
            snprintf(words, sizeof words, "positions|dtype|%d", dtypes[i]);
            refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, words);
        }
        c = with_ids(kind), c->positions.ids = (const char *)memory.ids + 4;
        refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|ids");
        c = with_ids(kind), c->positions.ids = (const char *)memory.ids + 2;
        c->positions.dtype = POSENC_I32;
        refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|ids");
        c = with_ids(kind), c->positions.stride[0] = INT64_MAX;
        refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|stride");
        c = with_ids(kind), c->positions.stride[0] = INT64_C(1) << 61;
        refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|stride");
    }
    c = with_ids(POSENC_POSITIONS_IDS), c->positions.stride[1] = INT64_MIN;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|stride");
}

/* B46-a for this struct: a larger one is accepted with a tail of zeros. */
static void test_larger_positions(void **state)
{
    struct { posenc_positions positions; unsigned char tail[16]; } larger;
    struct call *c = fresh();

    (void)state;
    memset(&larger, 0, sizeof larger);
    larger.positions = c->positions;
    larger.positions.struct_size = sizeof larger;
    c->positions_arg = &larger.positions;
    accept(ROWS | ROPE, c);
    larger.tail[15] = 1;
    refuse(ROWS | ROPE, c, POSENC_ERROR_ARGUMENT, "positions|struct_size");
}

static void test_position_range(void **state)
{
    static const struct { int64_t start; const char *text; } bad[] = {
        {INT64_C(2147483648), "2147483648"}, {INT64_C(2147483646), "2147483648"},
        {INT64_C(-2147483649), "-2147483649"}, {INT64_MAX, "9223372036854775807"},
        {INT64_MAX - 1, "9223372036854775806"}, {INT64_MIN, "-9223372036854775808"}};
    struct call *c;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        c = fresh(), c->positions.start = bad[i].start;
        refuse(ROWS | ROPE, c, POSENC_ERROR_POSITION, bad[i].text);
        c = with_ids(POSENC_POSITIONS_STARTS), memory.ids[1] = bad[i].start;
        refuse(ROWS | ROPE, c, POSENC_ERROR_POSITION, bad[i].text);
        if (bad[i].start == INT64_C(2147483646)) continue; /* as an id of its own it is right */
        c = with_ids(POSENC_POSITIONS_IDS), memory.ids[BATCH * TOKENS - 1] = bad[i].start;
        refuse(ROWS | ROPE, c, POSENC_ERROR_POSITION, bad[i].text);
    }
    c = fresh(), c->positions.start = INT32_MAX - TOKENS + 1;
    accept(ROWS | ROPE, c);
    c = fresh(), c->positions.start = INT32_MIN;
    accept(ROWS | ROPE, c);
}

/* A limit holds only where the plan sets one; negative positions stay legal. */
static void test_max_position(void **state)
{
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, CHANNELS, WIDTH);
    struct call *c = fresh();
    posenc_plan *plan;

    (void)state;
    params.max_position = 8;
    plan = test_plan(&params);
    c->plan = plan;
    c->positions.start = 8 - TOKENS;
    accept(ROWS | ROPE, c);
    c->positions.start = -100;
    accept(ROWS | ROPE, c);
    c = fresh(), c->plan = plan, c->positions.start = 8 - TOKENS + 1;
    refuse(ROWS | ROPE, c, POSENC_ERROR_POSITION, "8|max_position");
    c = fresh(), c->plan = plan, c->positions.start = 1000;
    refuse(ROWS | ROPE, c, POSENC_ERROR_POSITION, "1000|max_position");
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_calls),
        cmocka_unit_test(test_pointers_and_enums),
        cmocka_unit_test(test_tensor_fields),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_ignored_strides),
        cmocka_unit_test(test_mismatches),
        cmocka_unit_test(test_positions_struct),
        cmocka_unit_test(test_larger_positions),
        cmocka_unit_test(test_position_range),
        cmocka_unit_test(test_max_position),
    };

    return cmocka_run_group_tests(tests, call_setup, call_teardown);
}
