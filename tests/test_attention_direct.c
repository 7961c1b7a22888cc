/* SPDX-License-Identifier: MIT */
/* The direct and the even kernels of attention: what they fetch, and how often, changes no bit. */
#include "../src/attention_kernels.h"

#include "support/guard.h"
#include "support/half.h"
#include "support/random.h"
#include "support/test.h"
#include "support/view.h"

enum { TILE = POSENC_ATTENTION_TILE, MOST_ROWS = 9, WIDTH = 128, WIDEST = 144 };

struct data {
    float q[MOST_ROWS][WIDEST], w[MOST_ROWS][TILE], a[MOST_ROWS], scale[TILE];
    const float *query[MOST_ROWS];
    char stored[2][TILE * (WIDEST * 4 + 16)]; /* keys or values, and what is fetched */
    const void **row[2], *scales[TILE]; /* rows: 64 addresses between unreadable pages */
    int64_t rows, width, begin, end, bytes;
    int32_t dtype;
};

/* Rows behind one another, as one head of [H][T][D], or with room between them. */
static void set_rows(struct data *d, int apart)
{
    const int64_t step = d->bytes + (apart ? 16 : 0);
    for (int64_t i = 0; i < TILE; i++) {
        d->row[0][i] = d->stored[0] + i * step;
        d->row[1][i] = d->stored[1] + i * step;
        for (int64_t c = 0; c < d->width; c++)
            if (d->dtype == POSENC_I8)
                d->stored[0][i * step + c] = (char)(c * 7 + i);
            else
                test_store(d->stored[0] + i * step, d->dtype, c, (float)(c % 13 - i % 5));
    }
}

static void fill(struct data *d, struct test_random *random)
{
    for (int64_t r = 0; r < MOST_ROWS; r++) {
        d->query[r] = d->q[r];
        d->a[r] = test_unit(random);
        for (int64_t c = 0; c < WIDEST; c++)
            d->q[r][c] = test_unit(random);
        for (int64_t i = 0; i < TILE; i++)
            d->w[r][i] = test_unit(random);
    }
    for (int64_t i = 0; i < TILE; i++) {
        d->scale[i] = test_unit(random);
        d->scales[i] = &d->scale[i];
    }
}

/* Sums and totals of one way to fetch; rows that the range leaves out stay as they were. */
static void run(const struct posenc_attention_kernels *kernels, const struct data *d,
                struct posenc_attention_fetched next, float *sums, float *o)
{
    const struct posenc_attention_scales scales = {d->dtype == POSENC_I8 ? d->scales : NULL, 30};
    struct posenc_attention_direct_sums products = {
        .rows = d->rows, .channels = d->width, .q = d->query, .key = d->row[0], .next = next,
        .scales = scales, .begin = d->begin, .end = d->end, .sums = sums};
    struct posenc_attention_direct_totals totals = {
        .rows = d->rows, .values = d->width, .w = d->w[0], .a = d->a, .value = d->row[0],
        .next = next, .scales = scales, .begin = d->begin, .end = d->end, .o = o};
    for (int64_t i = 0; i < MOST_ROWS * TILE; i++)
        sums[i] = 1.0f;
    for (int64_t i = 0; i < MOST_ROWS * WIDEST; i++)
        o[i] = (float)(i % 7);
    kernels->direct_sums[posenc_attention_type(d->dtype)](&products);
    kernels->direct_totals[posenc_attention_type(d->dtype)](&totals);
}

static void check(const struct posenc_attention_kernels *kernels, const struct data *d)
{
    static float sums[2][MOST_ROWS * TILE], o[2][MOST_ROWS * WIDEST];
    run(kernels, d, (struct posenc_attention_fetched){NULL, 0, 0}, sums[0], o[0]);
    for (int n = 0; n < 8; n++) {
        const void *const *rows = n & 2 ? d->row[1] : NULL;
        const int64_t bytes = n & 4 ? d->bytes : 128 * (int64_t)test_size(d->dtype);
        run(kernels, d, (struct posenc_attention_fetched){rows, bytes, n & 1}, sums[1], o[1]);
        assert_memory_equal(sums[0], sums[1], sizeof(sums[0]));
        assert_memory_equal(o[0], o[1], sizeof(o[0]));
    }
}

static struct test_guard guard[2];

static int make_guards(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        guard[i] = test_guard_new(TILE * sizeof(void *));
    return 0;
}

static int free_guards(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        test_guard_free(&guard[i]);
    return 0;
}

/* One call of every ISA; the addresses lie at either end of their pages. */
static void check_all(struct data *d, int apart, struct test_random *random)
{
    const size_t addresses = TILE * sizeof(void *);
    int32_t isas[TEST_ISAS];
    const size_t all = test_isas(isas);
    d->bytes = d->width * (int64_t)test_size(d->dtype);
    for (int i = 0; i < 2; i++)
        d->row[i] = test_guard_at(&guard[i], addresses, sizeof(void *),
                                  test_below(random, 2) ? TEST_AT_END : TEST_AT_START);
    fill(d, random);
    set_rows(d, apart);
    for (size_t i = 0; i < all; i++)
        if (posenc_kernels_get(isas[i])->attention_tiles)
            check(posenc_kernels_get(isas[i])->attention_tiles, d);
}

static const int32_t dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16, POSENC_I8};

/* What decoding does most, with kernels of its own. */
static void fetching_beside_whole_tiles_of_the_usual_width_changes_no_bit(void **state)
{
    static struct data d;
    struct test_random random = {8};
    (void)state;
    d.width = 128;
    d.end = TILE;
    for (int n = 0; n < 4 * MOST_ROWS * 4; n++) {
        d.dtype = dtypes[n % 4];
        d.rows = 1 + n / 4 % MOST_ROWS;
        check_all(&d, n / 4 / MOST_ROWS % 2, &random);
    }
}

static void fetching_changes_no_bit(void **state)
{
    static const int64_t widths[] = {128, 128, 64, 96, 144, 20};
    static struct data d;
    struct test_random random = {7};
    (void)state;
    for (int n = 0; n < (test_quick() ? 200 : 2000); n++) {
        d.width = widths[test_below(&random, 6)];
        d.dtype = dtypes[test_below(&random, 4)];
        d.rows = 1 + test_below(&random, MOST_ROWS);
        d.begin = test_below(&random, 2) ? 0 : test_below(&random, TILE);
        d.end = TILE;
        if (test_below(&random, 2))
            d.end = d.begin + 1 + test_below(&random, (uint32_t)(TILE - d.begin));
        check_all(&d, (int)test_below(&random, 2), &random);
    }
}

/* Keys or values of the usual width, `step` bytes apart; what is fetched may be nowhere. */
static void check_even(const struct posenc_attention_kernels *kernels, int64_t rows, int32_t dtype,
                       const void *const *stored, const char *next, ptrdiff_t step)
{
    enum { MOST = 4 };
    static float q[MOST][WIDTH], w[MOST * TILE], sums[2][MOST * TILE], o[2][MOST * WIDTH];
    static const float a[MOST] = {0.75f, 0.5f, 3.0f, 0.0f};
    const float *query[MOST] = {q[2], q[0], q[3], q[1]};
    struct posenc_attention_direct_sums products = {
        .rows = rows, .channels = WIDTH, .q = query, .key = stored, .end = TILE, .sums = sums[0]};
    struct posenc_attention_direct_totals totals = {
        .rows = rows, .values = WIDTH, .w = w, .a = a, .value = stored, .end = TILE, .o = o[0]};
    struct test_random random = {9};
    for (int64_t i = 0; i < MOST * WIDTH; i++)
        q[i / WIDTH][i % WIDTH] = test_unit(&random);
    for (int64_t i = 0; i < MOST * TILE; i++)
        w[i] = test_unit(&random);
    for (int n = 0; n < 4; n++) {
        const struct posenc_attention_even even = {stored[0], n & 2 ? next : NULL, step, -step,
                                                   n & 1};
        for (int64_t i = 0; i < MOST * WIDTH; i++)
            o[0][i] = o[1][i] = (float)(i % 7);
        memset(sums, 0x7b, sizeof(sums));
        kernels->direct_sums[posenc_attention_type(dtype)](&products);
        kernels->direct_totals[posenc_attention_type(dtype)](&totals);
        kernels->even->sums[posenc_attention_type(dtype)](rows, query, &even, sums[1]);
        kernels->even->totals[posenc_attention_type(dtype)](rows, w, a, &even, o[1]);
        assert_memory_equal(sums[0], sums[1], sizeof(sums[0]));
        assert_memory_equal(o[0], o[1], sizeof(o[0]));
    }
}

static void even_tiles_have_the_bits_of_tables(void **state)
{
    static const ptrdiff_t steps[] = {256, 2048, -256, -4096, 0};
    const size_t room = TILE * 4096;
    struct test_guard memory = test_guard_new(room), nowhere = test_guard_new(1);
    int32_t isas[TEST_ISAS];
    const size_t all = test_isas(isas);
    struct test_random random = {10};
    (void)state;
    for (int n = 0; n < 2 * 5 * 2; n++) {
        const int32_t dtype = n % 2 ? POSENC_F16 : POSENC_BF16;
        const ptrdiff_t step = steps[n / 2 % 5], apart = step < 0 ? -step : step;
        const size_t bytes = (size_t)((TILE - 1) * apart + 2 * WIDTH);
        char *at = test_guard_at(&memory, bytes, 2, n / 10 ? TEST_AT_END : TEST_AT_START);
        const void *rows[TILE];
        for (int64_t i = 0; i < TILE; i++) {
            rows[i] = at + (step < 0 ? (i - TILE + 1) * step : i * step);
            for (int64_t c = 0; c < WIDTH; c++)
                test_store((char *)rows[i], dtype, c, test_unit(&random) * (float)(1 + i % 5));
        }
        for (size_t i = 0; i < all; i++) {
            const struct posenc_attention_kernels *kernels =
                posenc_kernels_get(isas[i])->attention_tiles;
            if (!kernels || !kernels->even)
                continue;
            check_even(kernels, 1, dtype, rows, (char *)nowhere.map, step);
            check_even(kernels, kernels->even->most, dtype, rows, (char *)nowhere.map, step);
        }
    }
    test_guard_free(&nowhere);
    test_guard_free(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fetching_beside_whole_tiles_of_the_usual_width_changes_no_bit),
        cmocka_unit_test(fetching_changes_no_bit),
        cmocka_unit_test(even_tiles_have_the_bits_of_tables),
    };
    return cmocka_run_group_tests(tests, make_guards, free_guards);
}
