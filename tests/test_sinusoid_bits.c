/* SPDX-License-Identifier: MIT */
/* Sinusoids have the same bits on every ISA, for every split, dtype, order of memory and call. */
#include "sinusoid_call.h"
#include "support/guard.h"
#include "support/half.h"
#include "support/view.h"

#include <math.h>

enum { TOKENS = 150, MOST = 80 };

/* Widths around the vectors and blocks of 16 pairs, in every form. The first pair of every other
 * one comes to 0 each 2 positions, where float32 shows the last places of its doubles. */
static posenc_sinusoid_params form(int n, int32_t isa)
{
    static const int32_t widths[] = {2, 7, 16, 30, 33, 64, 71, 80};
    posenc_sinusoid_params p = sinusoid_params(widths[n % 8], 1 + n / 8 % 2);

    p.cosine_first = n / 16 % 2;
    p.odd = n / 32 % 2 ? POSENC_ODD_SINE : POSENC_ODD_ZERO;
    p.scale = n % 2 ? 0x1.921fb54442d18p-1 : 1;
    p.position_offset = 5;
    p.padding_row = 9;
    p.isa = isa;
    return p;
}

enum { FORMS = 64 };

/* The row of one position by its definition: one pair after another from halves of width 2 h. */
static void oracle(const posenc_sinusoid_params *p, const posenc_sinusoid *halves, int64_t position,
                   float *row)
{
    const int32_t h = p->odd == POSENC_ODD_SINE ? (p->dim + 1) / 2 : p->dim / 2;
    float both[2 * MOST] = {0};

    sinusoid_run(halves, position + p->position_offset, 1, 2 * h, POSENC_F32, both);
    if (position + p->position_offset == p->padding_row) memset(both, 0, sizeof both);
    if (p->dim % 2 && p->odd == POSENC_ODD_ZERO) row[p->dim - 1] = 0;
    for (int32_t i = 0; i < h; i++) {
        const int32_t cosines = p->dim / 2, first = p->cosine_first;

        if (p->arrangement == POSENC_SINUSOID_HALVES) {
            row[first ? cosines + i : i] = both[i];
            if (i < cosines) row[first ? i : h + i] = both[h + i];
        } else {
            row[i < cosines ? 2 * i + first : 2 * i] = both[i];
            if (i < cosines) row[2 * i + !first] = both[h + i];
        }
    }
}

static posenc_sinusoid *halves_of(const posenc_sinusoid_params *p)
{
    const int32_t h = p->odd == POSENC_ODD_SINE ? (p->dim + 1) / 2 : p->dim / 2;
    posenc_sinusoid_params q = sinusoid_params(2 * h, POSENC_SINUSOID_HALVES);

    q.scale = p->scale;
    q.isa = POSENC_ISA_SCALAR;
    return sinusoid_new(&q);
}

static void check_rows(const float *got, const float *expected, int64_t count, const char *what,
                       int n)
{
    if (memcmp(got, expected, (size_t)count * sizeof *got))
        for (int64_t i = 0; i < count; i++)
            if (memcmp(&got[i], &expected[i], 4))
                fail_msg("form %d, %s, value %d: %a instead of %a", n, what, (int)i,
                         (double)got[i], (double)expected[i]);
}

/* Across 0, so that both signs are met; whole, in slices, and as ids in any order. */
static void test_isas_and_splits(void **state)
{
    static float expected[TOKENS * MOST], got[TOKENS * MOST];
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);

    (void)state;
    for (int n = 0; n < FORMS; n++)
        for (size_t k = 0; k < count; k++) {
            posenc_sinusoid_params p = form(n, isas[k]);
            posenc_sinusoid *sinusoid = sinusoid_new(&p), *halves = halves_of(&p);

            for (int64_t t = 0; t < TOKENS; t++)
                oracle(&p, halves, t - 70, expected + t * p.dim);
            memset(got, 0xff, sizeof got);
            sinusoid_run(sinusoid, -70, TOKENS, p.dim, POSENC_F32, got);
            check_rows(got, expected, TOKENS * p.dim, "whole", n);
            memset(got, 0xff, sizeof got);
            for (int64_t t = 0, step = 1; t < TOKENS; t += step, step = step * 3 % 29 + 1)
                sinusoid_run(sinusoid, t - 70, step < TOKENS - t ? step : TOKENS - t, p.dim,
                             POSENC_F32, got + t * p.dim);
            check_rows(got, expected, TOKENS * p.dim, "slices", n);
            for (int64_t t = 0; t < TOKENS; t++) {
                double position = (double)(t * 7 % TOKENS - 70);

                sinusoid_real(sinusoid, &position, 1, p.dim, POSENC_F32,
                              got + t * 7 % TOKENS * p.dim);
            }
            check_rows(got, expected, TOKENS * p.dim, "whole real positions", n);
            posenc_sinusoid_free(sinusoid);
            posenc_sinusoid_free(halves);
        }
}

/* Rows of cosines, then sines, in plain C, each token by a call of its own. */
static void plain_rows(int64_t start, int64_t count, int32_t dim, float *rows)
{
    posenc_sinusoid_params p = sinusoid_params(dim, POSENC_SINUSOID_HALVES);

    p.cosine_first = 1;
    p.isa = POSENC_ISA_SCALAR;
    posenc_sinusoid *sinusoid = sinusoid_new(&p);

    for (int64_t t = 0; t < count; t++)
        sinusoid_run(sinusoid, start + t, 1, dim, POSENC_F32, rows + t * dim);
    posenc_sinusoid_free(sinusoid);
}

/* Neighbours that count up and down, stand still and jump, within 64 positions and across, with
 * real positions between: as each by itself. */
static void test_ids_in_any_order(void **state)
{
    static float expected[TOKENS * MOST], got[TOKENS * MOST];
    struct test_random random = {.state = 1};
    double ids[TOKENS];
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);

    (void)state;
    for (int n = 0; n < FORMS * 4; n++) {
        double position = (double)test_below(&random, 400) - 200;

        for (int t = 0, left = 0, step = 0; t < TOKENS; t++, left--) {
            if (left <= 0) {
                left = 1 + (int)test_below(&random, 40);
                step = (int)test_below(&random, 4) - 1;
                if (step == 2) position = (double)test_below(&random, 400) - 200;
            }
            ids[t] = position + (n % 3 == 2 && test_below(&random, 8) == 0 ? 0.25 : 0);
            position += step;
        }
        for (size_t k = 0; k < count; k++) {
            posenc_sinusoid_params p = form(n % FORMS, isas[k]);
            posenc_sinusoid *sinusoid = sinusoid_new(&p);

            for (int64_t t = 0; t < TOKENS && k == 0; t++)
                sinusoid_real(sinusoid, &ids[t], 1, p.dim, POSENC_F32, expected + t * p.dim);
            memset(got, 0xff, sizeof got);
            sinusoid_real(sinusoid, ids, TOKENS, p.dim, POSENC_F32, got);
            check_rows(got, expected, TOKENS * p.dim, "any order", n);
            posenc_sinusoid_free(sinusoid);
        }
    }
}

/* A row goes out from one up to 31 positions before it: what rounding adds on the way stays below
 * the 0.00001 u that docs/accuracy.md derives. */
static void test_whole_groups(void **state)
{
    enum { DIM = 256, COUNT = 131 };
    static const int64_t starts[] = {0, 64 * 999, -130, INT32_MAX - COUNT, INT32_MIN, 1 << 30};
    static const double bases[] = {1.5, 10000, 1e9};
    static float rows[COUNT * DIM];
    static double exact[COUNT * DIM];

    (void)state;
    for (int n = 0; n < 18; n++) {
        posenc_sinusoid_params p = sinusoid_params(DIM, 1 + n % 2);

        p.base = bases[n / 6];
        posenc_sinusoid *sinusoid = sinusoid_new(&p);

        sinusoid_run(sinusoid, starts[n % 6], COUNT, DIM, POSENC_F32, rows);
        sinusoid_run(sinusoid, starts[n % 6], COUNT, DIM, POSENC_F64, exact);
        for (int i = 0; i < COUNT * DIM; i++)
            if (!(fabs((double)rows[i] - exact[i]) <= 0.50001 * 0x1p-24))
                fail_msg("start %lld, base %g, value %d: %a instead of %a",
                         (long long)starts[n % 6], p.base, i, (double)rows[i], exact[i]);
        posenc_sinusoid_free(sinusoid);
    }
}

/* Wide enough for several chunks, and a batch that shares its positions: same rows as alone, and
 * those of a rotation by the same frequencies but for a last place now and then. */
static void test_wide_and_batch(void **state)
{
    enum { DIM = 2 * 1024 + 2 * 33, BATCH = 3, COUNT = 19 };
    static float rows[COUNT * DIM], turned[COUNT * DIM], plain[COUNT * DIM];
    static float all[BATCH * COUNT * DIM];
    posenc_rope_params rope = test_params(POSENC_SPLIT_HALF, DIM, DIM);
    posenc_plan *plan = test_plan(&rope);
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor view;
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);

    (void)state;
    posenc_positions_start(&positions, 1021);
    posenc_tensor_contiguous(&view, turned, POSENC_F32, 1, COUNT, 1, DIM);
    test_ok(posenc_rows(plan, &positions, &view, &error), &error);
    plain_rows(1021, COUNT, DIM, rows);
    for (int i = 0; i < COUNT * DIM; i++)
        assert_true(fabs((double)rows[i] - (double)turned[i]) <= 0x1p-24);
    for (size_t k = 0; k < count; k++)
        for (int arrangement = 1; arrangement <= 2; arrangement++) {
            posenc_sinusoid_params p = sinusoid_params(DIM, arrangement);

            p.cosine_first = 1;
            p.isa = isas[k];
            posenc_sinusoid *sinusoid = sinusoid_new(&p);

            sinusoid_run(sinusoid, 1021, COUNT, DIM, POSENC_F32, plain);
            for (int t = 0; t < COUNT; t++)
                for (int i = 0; i < DIM / 2; i++) {
                    int step = arrangement == 1 ? 2 : 1, other = arrangement == 1 ? 1 : DIM / 2;

                    assert_memory_equal(&plain[t * DIM + step * i], &rows[t * DIM + i], 4);
                    assert_memory_equal(&plain[t * DIM + step * i + other],
                                        &rows[t * DIM + DIM / 2 + i], 4);
                }
            posenc_tensor_contiguous(&view, all, POSENC_F32, BATCH, COUNT, 1, DIM);
            test_ok(posenc_sinusoid_fill(sinusoid, &positions, &view, &error), &error);
            for (int b = 0; b < BATCH; b++)
                assert_memory_equal(all + b * COUNT * DIM, plain, sizeof plain);
            posenc_sinusoid_free(sinusoid);
        }
    posenc_plan_free(plan);
}

enum { DIRECT_DIM = 2 * (512 + 32), DIRECT_BATCH = 9, DIRECT_COUNT = 83, DIRECT_START = 1021 };

/* One batch row against plain_rows: element `i` of `rows` at its channel, or x / 2 more. */
static void check_direct(const posenc_sinusoid_params *p, const float *rows, const float *got,
                         const float *x)
{
    const int half = DIRECT_DIM / 2, turns = p->arrangement == POSENC_SINUSOID_INTERLEAVED;

    for (int t = 0; t < DIRECT_COUNT; t++)
        for (int i = 0; i < DIRECT_DIM; i++) {
            int second = (i < half) != p->cosine_first, pair = i % half;
            int at = t * DIRECT_DIM + (turns ? 2 * pair + second : second * half + pair);
            float expected = rows[t * DIRECT_DIM + i];

            if (x) expected = fmaf(x[at], 0.5f, expected);
            if (memcmp(&got[at], &expected, 4))
                fail_msg("isa %d, arrangement %d, token %d, element %d: %a instead of %a", p->isa,
                         p->arrangement, t, i, (double)got[at], (double)expected);
        }
}

/* Whole blocks of pairs, several chunks and stretches, more batch rows than go at a time. */
static void test_rows_in_place(void **state)
{
    enum { ROW = DIRECT_COUNT * DIRECT_DIM };
    static float rows[ROW], x[DIRECT_BATCH * ROW], all[DIRECT_BATCH * ROW];
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor view, from;
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);

    (void)state;
    posenc_positions_start(&positions, DIRECT_START);
    plain_rows(DIRECT_START, DIRECT_COUNT, DIRECT_DIM, rows);
    for (int i = 0; i < DIRECT_BATCH * ROW; i++)
        x[i] = (float)(i % 1013) / 7;
    for (size_t k = 0; k < 4 * count; k++) {
        posenc_sinusoid_params p = sinusoid_params(DIRECT_DIM, 1 + (int32_t)k % 2);

        p.cosine_first = k / 2 % 2;
        p.isa = isas[k / 4];
        posenc_sinusoid *sinusoid = sinusoid_new(&p);

        for (int batch = 1; batch <= DIRECT_BATCH; batch += DIRECT_BATCH - 1) {
            posenc_tensor_contiguous(&from, x, POSENC_F32, batch, DIRECT_COUNT, 1, DIRECT_DIM);
            posenc_tensor_contiguous(&view, all, POSENC_F32, batch, DIRECT_COUNT, 1, DIRECT_DIM);
            test_ok(posenc_sinusoid_fill(sinusoid, &positions, &view, &error), &error);
            for (int b = 0; b < batch; b++)
                check_direct(&p, rows, all + b * ROW, NULL);
            test_ok(posenc_sinusoid_add(sinusoid, &positions, 0.5, &from, &view, &error), &error);
            for (int b = 0; b < batch; b++)
                check_direct(&p, rows, all + b * ROW, x + b * ROW);
            memcpy(all, x, sizeof all);
            test_ok(posenc_sinusoid_add(sinusoid, &positions, 0.5, &view, NULL, &error), &error);
            for (int b = 0; b < batch; b++)
                check_direct(&p, rows, all + b * ROW, x + b * ROW);
        }
        posenc_sinusoid_free(sinusoid);
    }
}

enum { PADDED_DIM = 64, PADDED_COUNT = 70, PADDED_START = 50, PADDED_BATCH = 2 };

/* Rows of `plain` in every batch row but for zeros at token `t`. */
static void check_padded(const float *got, const float *plain, int64_t t)
{
    static const float zeros[PADDED_DIM];

    for (int64_t i = 0; i < PADDED_BATCH * PADDED_COUNT; i++) {
        const int64_t token = i % PADDED_COUNT;
        const float *row = token == t ? zeros : plain + token * PADDED_DIM;

        if (memcmp(got + i * PADDED_DIM, row, sizeof zeros))
            fail_msg("padding at token %d: row %d differs", (int)t, (int)i);
    }
}

/* The padding row at every token of whole blocks of pairs, first and last of a stretch included. */
static void test_padding_anywhere(void **state)
{
    enum { ROW = PADDED_COUNT * PADDED_DIM };
    static float plain[ROW], got[PADDED_BATCH * ROW];
    posenc_sinusoid_params p = sinusoid_params(PADDED_DIM, POSENC_SINUSOID_HALVES);
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor view;

    (void)state;
    p.cosine_first = 1;
    plain_rows(PADDED_START, PADDED_COUNT, PADDED_DIM, plain);
    posenc_positions_start(&positions, PADDED_START);
    for (int64_t t = 0; t < PADDED_COUNT; t++) {
        p.padding_row = PADDED_START + t;
        posenc_sinusoid *sinusoid = sinusoid_new(&p);

        memset(got, 0xff, sizeof got);
        posenc_tensor_contiguous(&view, got, POSENC_F32, PADDED_BATCH, PADDED_COUNT, 1, PADDED_DIM);
        test_ok(posenc_sinusoid_fill(sinusoid, &positions, &view, &error), &error);
        check_padded(got, plain, t);
        memset(got, 0xff, sizeof plain);
        sinusoid_run(sinusoid, PADDED_START, PADDED_COUNT, PADDED_DIM, POSENC_F32, got);
        check_padded(got, plain, t);
        posenc_sinusoid_free(sinusoid);
    }
}

/* An offset that no float holds, and a real position: their sum in double. */
static void test_real_with_offset(void **state)
{
    const double half = 0.5, sum = 0x1p24 + 1.5;
    float got[64], expected[64];
    posenc_sinusoid_params p = sinusoid_params(64, POSENC_SINUSOID_HALVES);
    posenc_sinusoid *plain = sinusoid_new(&p);

    (void)state;
    p.position_offset = (1 << 24) + 1;
    posenc_sinusoid *moved = sinusoid_new(&p);

    sinusoid_real(plain, &sum, 1, 64, POSENC_F32, expected);
    sinusoid_real(moved, &half, 1, 64, POSENC_F32, got);
    assert_memory_equal(got, expected, sizeof got);
    posenc_sinusoid_free(moved);
    posenc_sinusoid_free(plain);
}

/* What addition makes of one element: in float, and rounded once; in double for F64. */
static double sum_of(double x, double scale, double row, int32_t dtype)
{
    if (dtype == POSENC_F64) return fma(x, scale, row);
    return (double)fmaf((float)x, (float)scale, (float)row);
}

static void check_added(const struct test_view *x, const void *before, const struct test_view *y,
                        const void *after, const float *rows, int64_t tokens, int64_t dim,
                        double scale)
{
    for (int64_t b = 0; b < 2; b++)
        for (int64_t t = 0; t < tokens; t++)
            for (int64_t c = 0; c < dim; c++) {
                double value = test_load(before, x->tensor.dtype, test_view_index(x, b, t, 0, c));
                double sum = sum_of(value, scale, (double)rows[t * dim + c], POSENC_F32);
                int64_t at = test_view_index(y, b, t, 0, c);
                uint64_t room = 0;

                test_store(&room, y->tensor.dtype, 0, sum);
                if (memcmp(&room, (const char *)after + (size_t)at * test_size(y->tensor.dtype),
                           test_size(y->tensor.dtype)))
                    fail_msg("token %d, channel %d", (int)t, (int)c);
            }
}

/* Every pair of dtypes, in place or not, next to unreadable pages. */
static void test_adding(void **state)
{
    static float rows[TOKENS * MOST];
    static unsigned char before[1 << 17];
    struct test_guard in = test_guard_new(1 << 17), out = test_guard_new(1 << 17);
    struct test_random random = {.state = 1};
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);
    posenc_error error = {0, ""};
    posenc_positions positions;

    (void)state;
    posenc_positions_start(&positions, -20);
    for (int n = 0; n < FORMS; n += test_quick() ? 7 : 1)
        for (size_t k = 0; k < count; k++)
            for (int kind = 0; kind < 12; kind++) {
                posenc_sinusoid_params p = form(n, isas[k]);
                const int32_t from = kind / 3 < 3 ? 1 + kind / 3 : 1 + kind % 3;
                const int32_t to = kind / 3 < 3 ? 1 + kind % 3 : from;
                const int64_t tokens = 37;
                posenc_sinusoid *sinusoid = sinusoid_new(&p);
                struct test_view x = test_view_new((enum test_order)(n % TEST_ORDERS), from, 2,
                                                   tokens, 1, p.dim);
                struct test_view y = test_view_new((enum test_order)((n + 2) % TEST_ORDERS), to, 2,
                                                   tokens, 1, p.dim);
                size_t x_bytes = (size_t)x.elements * test_size(from);
                size_t y_bytes = (size_t)y.elements * test_size(to);
                enum test_place place = (enum test_place)((n + kind) % TEST_PLACES);
                void *source = test_guard_at(&in, x_bytes, test_size(from), place);
                void *sink = test_guard_at(&out, y_bytes, test_size(to), place);

                test_view_at(&x, source);
                test_view_at(&y, sink);
                test_view_fill(&x, source, TEST_NAN, 0, p.dim, &random);
                memcpy(before, source, x_bytes);
                sinusoid_run(sinusoid, -20, tokens, p.dim, POSENC_F32, rows);
                test_ok(posenc_sinusoid_add(sinusoid, &positions, 1.7, &x.tensor,
                                            kind < 9 ? &y.tensor : NULL, &error), &error);
                if (kind < 9) {
                    assert_memory_equal(before, source, x_bytes);
                    check_added(&x, before, &y, sink, rows, tokens, p.dim, 1.7);
                } else {
                    check_added(&x, before, &x, source, rows, tokens, p.dim, 1.7);
                }
                posenc_sinusoid_free(sinusoid);
            }
    test_guard_free(&in);
    test_guard_free(&out);
}

/* 16-bit rows are those of float32, rounded once. F64 rows round to them, and add in double. */
static void test_dtypes(void **state)
{
    float rows[37 * MOST];
    double wide[37 * MOST], sums[37 * MOST];
    uint16_t narrow[37 * MOST];
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor view;

    (void)state;
    posenc_positions_start(&positions, 3);
    for (int n = 0; n < FORMS; n++)
        for (size_t k = 0; k < count; k++) {
            posenc_sinusoid_params p = form(n, isas[k]);
            posenc_sinusoid *sinusoid = sinusoid_new(&p);

            sinusoid_run(sinusoid, 3, 37, p.dim, POSENC_F32, rows);
            sinusoid_run(sinusoid, 3, 37, p.dim, POSENC_F64, wide);
            for (int32_t dtype = POSENC_F16; dtype <= POSENC_BF16; dtype++) {
                sinusoid_run(sinusoid, 3, 37, p.dim, dtype, narrow);
                for (int i = 0; i < 37 * p.dim; i++)
                    assert_int_equal(narrow[i], test_narrow((double)rows[i], dtype));
            }
            for (int i = 0; i < 37 * p.dim; i++) {
                assert_true(fabs(wide[i] - (double)rows[i]) <= 0.51 * 0x1p-24);
                sums[i] = 0.25 * i;
            }
            posenc_tensor_contiguous(&view, sums, POSENC_F64, 1, 37, 1, p.dim);
            test_ok(posenc_sinusoid_add(sinusoid, &positions, 3.1, &view, NULL, &error), &error);
            for (int i = 0; i < 37 * p.dim; i++)
                assert_true(sums[i] == sum_of(0.25 * i, 3.1, wide[i], POSENC_F64));
            posenc_sinusoid_free(sinusoid);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_isas_and_splits),
        cmocka_unit_test(test_ids_in_any_order),
        cmocka_unit_test(test_whole_groups),
        cmocka_unit_test(test_rows_in_place),
        cmocka_unit_test(test_wide_and_batch),
        cmocka_unit_test(test_padding_anywhere),
        cmocka_unit_test(test_real_with_offset),
        cmocka_unit_test(test_adding),
        cmocka_unit_test(test_dtypes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
