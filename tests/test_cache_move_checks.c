/* SPDX-License-Identifier: MIT */
/* What a move must leave alone, every split of it, and what it refuses. */
#include "cache_store.h"

#include <math.h>

enum { SLOTS = 6, HEADS = 2, WIDTH = 32, SIZE = 2 * SLOTS * HEADS * WIDTH };

static posenc_positions one_delta(const void *ids, int32_t dtype)
{
    return (posenc_positions){.struct_size = sizeof(posenc_positions),
                              .kind = POSENC_POSITIONS_IDS, .dtype = dtype, .ids = ids};
}

static posenc_plan *plain_plan(void)
{
    posenc_rope_params p = test_params(POSENC_SPLIT_HALF, WIDTH, WIDTH);
    return test_plan(&p);
}

/* NaN with a payload, -0, subnormals: a rotation by (1, 0) would not keep them. */
static void a_delta_of_zero_keeps_bytes(void **state)
{
    static const double zeros[3] = {0.0, -0.0, 0x1p-1060};
    static unsigned char memory[SIZE * 4], before[SIZE * 4];
    static float scales[2 * SLOTS * HEADS];
    static const int32_t dtypes[4] = {POSENC_F32, POSENC_F16, POSENC_BF16, POSENC_I8};
    posenc_plan *plan = plain_plan();
    posenc_error error = {0, ""};
    (void)state;
    for (int d = 0; d < 4; d++)
        for (int z = 0; z < 3; z++)
            for (int each = 0; each < 2; each++) {
                double deltas[SLOTS];
                posenc_tensor t;
                posenc_cache cache;
                for (int i = 0; i < SLOTS; i++) deltas[i] = i == 3 && each ? 5 : zeros[z];
                for (size_t i = 0; i < sizeof memory; i++)
                    memory[i] = (unsigned char)(i % 7 == 0 ? 0xff : 0x80 * (i % 2));
                for (int i = 0; i < 2 * SLOTS * HEADS; i++) scales[i] = i % 2 ? NAN : 0.125f;
                memcpy(before, memory, sizeof memory);
                posenc_tensor_contiguous(&t, memory, dtypes[d], 2, SLOTS, HEADS, WIDTH);
                posenc_cache_plain(&cache, &t);
                if (dtypes[d] == POSENC_I8)
                    posenc_tensor_contiguous(&cache.scales, scales, POSENC_F32, 2, SLOTS, HEADS, 1);
                posenc_positions positions = one_delta(deltas, POSENC_F64);
                positions.stride[1] = each;
                test_ok(posenc_cache_move(plan, &positions, &cache, -1, 0, SLOTS, &error), &error);
                const size_t token = HEADS * WIDTH * (d == 0 ? 4 : d == 3 ? 1 : 2);
                for (size_t i = 0; i < 2 * SLOTS; i++)
                    if (!each || i % SLOTS != 3)
                        assert_memory_equal(memory + i * token, before + i * token, token);
                assert_int_equal(memcmp(memory, before, sizeof memory) != 0, each);
            }
    posenc_plan_free(plan);
}

static void split_at(const struct store *s, const posenc_plan *plan, const int64_t *ids,
                     int64_t low, int64_t middle, int64_t high)
{
    posenc_error error = {0, ""};
    posenc_positions a = one_delta(ids, POSENC_I64);
    posenc_positions b = one_delta(ids + (middle - low), POSENC_I64);
    a.stride[1] = b.stride[1] = 1;
    test_ok(posenc_cache_move(plan, &a, &s->cache, 0, low, middle - low, &error), &error);
    test_ok(posenc_cache_move(plan, &b, &s->cache, 0, middle, high - middle, &error), &error);
}

static void every_split_has_the_bits_of_the_whole(void **state)
{
    posenc_plan *plan = plain_plan();
    struct test_random random = {31};
    (void)state;
    for (int i = 0; i < 60; i++) {
        struct store_form form = store_any(&random);
        struct store s;
        int64_t ids[100], low, high;
        form.channels = WIDTH;
        if (form.groups) form.groups = 1;
        store_new(&s, &form, &random);
        store_range(&s, 0, 1, &low, &high);
        for (int n = 0; n < 100; n++) ids[n] = n / 5 % 3 * ((int64_t)test_below(&random, 99) - 50);
        void *before = store_snapshot(&s);
        split_at(&s, plan, ids, low, low, high);
        void *whole = store_snapshot(&s);
        for (int64_t middle = low + 1; middle <= high; middle++) {
            store_restore(&s, before);
            before = store_snapshot(&s);
            split_at(&s, plan, ids, low, middle, high);
            void *copy = malloc(s.rows_bytes + s.scales_bytes);
            memcpy(copy, whole, s.rows_bytes + s.scales_bytes);
            assert_true(store_same(&s, copy));
        }
        free(before);
        free(whole);
        store_free(&s);
    }
    posenc_plan_free(plan);
}

/* Heads wider than what is computed at a time, by one row or by many: the bits of posenc_rotate. */
static void wide_heads(void **state)
{
    enum { WIDE = 1120, TURNING = 1100, KEYS = 5 };
    static float a[KEYS * 2 * WIDE], b[KEYS * 2 * WIDE], row[KEYS * TURNING];
    static const int64_t ids[KEYS] = {5, -3, 0, 99, 5000};
    struct test_random random = {12};
    posenc_error error = {0, ""};
    (void)state;
    for (int way = 0; way < 4; way++) {
        posenc_rope_params p = test_params(1 + way % 2, WIDE, TURNING);
        posenc_tensor t, rows;
        posenc_cache at;
        posenc_positions deltas = one_delta(ids, POSENC_I64), zero;
        p.rotary_offset = 7;
        posenc_plan *plan = test_plan(&p);
        deltas.stride[1] = way / 2;
        test_fill(a, POSENC_F32, 0, KEYS * 2 * WIDE, TEST_SMALL, &random);
        memcpy(b, a, sizeof a);
        posenc_tensor_contiguous(&t, a, POSENC_F32, 1, KEYS, 2, WIDE);
        posenc_tensor_contiguous(&rows, row, POSENC_F32, 1, KEYS, 1, TURNING);
        test_ok(posenc_rows(plan, &deltas, &rows, &error), &error);
        test_ok(posenc_rotate(plan, POSENC_FORWARD, &rows, &t, NULL, NULL, NULL, &error), &error);
        t.data = b;
        posenc_cache_plain(&at, &t);
        test_ok(posenc_cache_move(plan, &deltas, &at, 0, 0, KEYS, &error), &error);
        assert_memory_equal(a, b, sizeof a);
        /* From position 0, whose row is 1, a re-base has the row of where it goes. */
        memcpy(b, a, sizeof a);
        test_ok(posenc_rotate(plan, POSENC_FORWARD, &rows, &t, NULL, NULL, NULL, &error), &error);
        t.data = a;
        posenc_cache_plain(&at, &t);
        static const int64_t none = 0;
        zero = one_delta(&none, POSENC_I64);
        test_ok(posenc_cache_rebase(plan, &zero, plan, &deltas, &at, 0, 0, KEYS, &error), &error);
        assert_memory_equal(a, b, sizeof a);
        posenc_plan_free(plan);
    }
}

/* ------------------------------------------------------------------------------------------------
 * Refusals
 * --------------------------------------------------------------------------------------------- */

static float memory[SIZE], mark[SIZE];
static posenc_cache cache;
static const posenc_plan *plan_arg;
static const posenc_positions *deltas_arg;

static void refused(int64_t sequence, int64_t first, int64_t count, int32_t status,
                    const char *words)
{
    posenc_error error = {0, ""};
    test_refused(posenc_cache_move(plan_arg, deltas_arg, &cache, sequence, first, count, &error),
                 status, &error, words);
    assert_int_equal(posenc_cache_move(plan_arg, deltas_arg, &cache, sequence, first, count, NULL),
                     status);
    assert_memory_equal(memory, mark, sizeof memory);
}

static void reset(const posenc_plan *plan, const posenc_positions *deltas)
{
    posenc_tensor t;
    posenc_tensor_contiguous(&t, memory, POSENC_F32, 2, SLOTS, HEADS, WIDTH);
    posenc_cache_plain(&cache, &t);
    plan_arg = plan;
    deltas_arg = deltas;
}

static void refusals(void **state)
{
    const int64_t far = INT64_C(1) << 31, near = 3;
    posenc_plan *plan = plain_plan();
    posenc_positions d = one_delta(&near, POSENC_I64), e = one_delta(&far, POSENC_I64);
    (void)state;
    for (int i = 0; i < SIZE; i++) memory[i] = mark[i] = (float)i;
    reset(plan, &d);
    refused(2, 0, 1, POSENC_ERROR_ARGUMENT, "sequence is 2|-1..1");
    refused(-2, 0, 1, POSENC_ERROR_ARGUMENT, "sequence is -2");
    refused(0, 0, -1, POSENC_ERROR_ARGUMENT, "count is -1");
    refused(0, 0, SLOTS + 1, POSENC_ERROR_POSITION, "cache: the keys from 0");
    refused(0, -1, 1, POSENC_ERROR_POSITION, "cache: the keys from -1");
    refused(0, INT64_MAX, INT64_MAX, POSENC_ERROR_POSITION, "cache: the keys");
    plan_arg = NULL;
    refused(0, 0, 1, POSENC_ERROR_ARGUMENT, "plan is NULL");
    reset(plan, NULL);
    refused(0, 0, 1, POSENC_ERROR_ARGUMENT, "deltas is NULL");
    reset(plan, &e);
    refused(0, 0, 1, POSENC_ERROR_POSITION, "deltas: position 2147483648|32-bit deltas");
    e = one_delta(memory + WIDTH, POSENC_I64);
    memset(memory + WIDTH, 0, 8);
    memset(mark + WIDTH, 0, 8);
    refused(0, 0, 1, POSENC_ERROR_OVERLAP, "deltas: cache|share memory");
    reset(plan, &d);
    cache.rows.shape[3] = WIDTH - 2;
    refused(0, 0, 1, POSENC_ERROR_ARGUMENT, "cache.rows.shape[3] is 30|head_dim (32)|of plan");
    reset(plan, &d);
    cache.rows.stride[2] = 1;
    refused(0, 0, 1, POSENC_ERROR_OVERLAP, "cache|cannot be written");
    reset(plan, &d);
    cache.kind = POSENC_CACHE_RING;
    cache.keep = 2;
    refused(0, 5, 5, POSENC_ERROR_POSITION, "RING of 6 slots that keeps 2 has 4");
    refused(0, 0, 7, POSENC_ERROR_POSITION, "RING of 6 slots that keeps 2 has 4");
    posenc_plan_free(plan);
}

static void int8_has_a_widest_head(void **state)
{
    enum { WIDEST = 8192 };
    static int8_t bytes[WIDEST + 32];
    static float scale[1] = {1};
    const int64_t near = 3;
    posenc_positions d = one_delta(&near, POSENC_I64);
    posenc_error error = {0, ""};
    (void)state;
    for (int more = 0; more < 2; more++) {
        const int32_t width = WIDEST + 32 * more;
        posenc_rope_params p = test_params(POSENC_SPLIT_HALF, width, width);
        posenc_plan *plan = test_plan(&p);
        posenc_tensor t;
        posenc_cache c;
        memset(bytes, 100, sizeof bytes);
        posenc_tensor_contiguous(&t, bytes, POSENC_I8, 1, 1, 1, width);
        posenc_cache_plain(&c, &t);
        posenc_tensor_contiguous(&c.scales, scale, POSENC_F32, 1, 1, 1, 1);
        int32_t status = posenc_cache_move(plan, &d, &c, 0, 0, 1, &error);
        if (more)
            test_refused(status, POSENC_ERROR_UNSUPPORTED, &error, "shape[3] is 8224|8192 at most");
        else
            test_ok(status, &error);
        assert_int_equal(bytes[0] == 100, more);
        posenc_plan_free(plan);
    }
}

static void tables_and_headers_are_refused(void **state)
{
    static const float table[4 * WIDTH];
    const int64_t near = 3;
    posenc_positions d = one_delta(&near, POSENC_I64);
    posenc_rope_params p = test_params(POSENC_SPLIT_HALF, WIDTH, WIDTH);
    posenc_plan *plan = test_plan(&p);
    posenc_cache_header header;
    posenc_error error = {0, ""};
    (void)state;
    p.cos_table = p.sin_table = table;
    p.cos_rows = p.sin_rows = 8;
    posenc_plan *tables = test_plan(&p);
    reset(tables, &d);
    refused(0, 0, 1, POSENC_ERROR_UNSUPPORTED, "plan was made from tables|posenc_cache_rebase");
    test_ok(posenc_cache_header_init(&header, &cache, plan, &error), &error);
    cache.header = &header;
    refused(0, 0, 1, POSENC_ERROR_ARGUMENT, "cache.header|plan");
    plan_arg = plan;
    test_ok(posenc_cache_header_init(&header, &cache, NULL, &error), &error);
    refused(0, 0, 1, POSENC_ERROR_ARGUMENT, "cache.header: its rows are not rotated and plan");
    test_ok(posenc_cache_header_init(&header, &cache, plan, &error), &error);
    test_ok(posenc_cache_move(plan, &d, &cache, 0, 0, 0, &error), &error);
    posenc_plan_free(tables);
    posenc_plan_free(plan);
}

static void deltas_do_not_count_up(void **state)
{
    static float data[3 * 4];
    posenc_tensor rows;
    posenc_cache c;
    posenc_positions deltas;
    posenc_error error = {0, ""};
    const posenc_rope_params params = test_params(POSENC_ADJACENT, 4, 4);
    posenc_plan *plan = test_plan(&params);
    (void)state;
    posenc_tensor_contiguous(&rows, data, POSENC_F32, 1, 3, 1, 4);
    posenc_cache_plain(&c, &rows);
    posenc_positions_start(&deltas, -5);
    test_refused(posenc_cache_move(plan, &deltas, &c, 0, 0, 2, &error),
                 POSENC_ERROR_ARGUMENT, &error, "deltas.kind is 0|one delta for all");
    test_ok(posenc_cache_move(plan, &deltas, &c, 0, 0, 1, &error), &error);
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delta_of_zero_keeps_bytes),
        cmocka_unit_test(every_split_has_the_bits_of_the_whole),
        cmocka_unit_test(wide_heads),
        cmocka_unit_test(refusals),
        cmocka_unit_test(int8_has_a_widest_head),
        cmocka_unit_test(tables_and_headers_are_refused),
        cmocka_unit_test(deltas_do_not_count_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
