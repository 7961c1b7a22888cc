/* SPDX-License-Identifier: MIT */
/* The direct and the even kernels of attention: what they fetch, and how often, changes no bit. */
#include "../src/attention_kernels.h"
#include "../src/attention_walk.h"

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

/* Rows of the usual width in unreadable surroundings, of `heads` heads that lie `head` bytes apart;
 * what is fetched is nowhere. */
struct even {
    const char *at, *nowhere;
    ptrdiff_t step, head;
    int64_t heads, rows; /* rows of each head */
    int32_t dtype;
};

enum { MOST_EVEN = 8 };

/* By tables, head by head. */
static void run_tables(const struct posenc_attention_kernels *kernels, const struct even *e,
                       const float *const *query, const float *w, const float *a, float *sums,
                       float *o)
{
    const int type = posenc_attention_type(e->dtype);
    const void *rows[TILE];
    for (int64_t h = 0; h < e->heads; h++) {
        const int64_t first = h * e->rows;
        const struct posenc_attention_direct_sums products = {
            .rows = e->rows, .channels = WIDTH, .q = query + first, .key = rows, .end = TILE,
            .sums = sums + first * TILE};
        const struct posenc_attention_direct_totals totals = {
            .rows = e->rows, .values = WIDTH, .w = w + first * TILE, .a = a + first, .value = rows,
            .end = TILE, .o = o + first * WIDTH};
        for (int64_t i = 0; i < TILE; i++)
            rows[i] = e->at + i * e->step + h * e->head;
        kernels->direct_sums[type](&products);
        kernels->direct_totals[type](&totals);
    }
}

static void check_even(const struct posenc_attention_kernels *kernels, const struct even *e)
{
    enum { ROWS = MOST_EVEN, AFTER = 16, UNTOUCHED = 0x7b };
    static float q[ROWS][WIDTH], w[ROWS * TILE], sums[2][ROWS * TILE + AFTER];
    static float o[2][ROWS * WIDTH + AFTER], spare[ROWS * WIDTH + AFTER];
    static const float a[ROWS] = {0.75f, 0.5f, 3.0f, 0.0f, 1.0f, 0.125f, 2.0f, 0.9f};
    const float *query[ROWS];
    const int type = posenc_attention_type(e->dtype);
    const int64_t all = e->heads * e->rows;
    struct test_random random = {9};
    for (int64_t i = 0; i < ROWS; i++)
        query[i] = q[(i * 5 + 2) % ROWS];
    for (int64_t i = 0; i < ROWS * WIDTH; i++)
        q[i / WIDTH][i % WIDTH] = test_unit(&random);
    for (int64_t i = 0; i < ROWS * TILE; i++)
        w[i] = test_unit(&random);
    for (int n = 0; n < 4; n++) {
        const struct posenc_attention_even even = {
            .rows = e->at, .next = n & 2 ? e->nowhere : NULL, .step = e->step, .head = e->head,
            .heads = e->heads, .again = n & 1 && e->heads == 1};
        for (int64_t i = 0; i < ROWS * WIDTH + AFTER; i++)
            o[0][i] = o[1][i] = (float)(i % 7);
        memset(sums, UNTOUCHED, sizeof(sums));
        memset(spare, UNTOUCHED, sizeof(spare));
        run_tables(kernels, e, query, w, a, sums[0], o[0]);
        float *needed = e->heads > 1 ? spare : NULL;
        kernels->even->sums[type](e->rows, query, &even, needed, sums[1]);
        kernels->even->totals[type](e->rows, w, a, &even, needed, o[1]);
        assert_memory_equal(sums[0], sums[1], sizeof(sums[0]));
        assert_memory_equal(o[0], o[1], sizeof(o[0]));
        for (size_t i = (size_t)(all * WIDTH) * sizeof(float); i < sizeof(spare); i++)
            assert_int_equal(((unsigned char *)spare)[i], UNTOUCHED);
    }
}

static void check_even_on_all(const struct even *e)
{
    int32_t isas[TEST_ISAS];
    const size_t all = test_isas(isas);
    for (size_t i = 0; i < all; i++) {
        const struct posenc_attention_kernels *kernels =
            posenc_kernels_get(isas[i])->attention_tiles;
        struct even other = *e;
        if (!kernels || !kernels->even)
            continue;
        check_even(kernels, e);
        other.rows = kernels->even->most;
        if (e->heads == 1)
            check_even(kernels, &other);
    }
}

static void even_tiles_have_the_bits_of_tables(void **state)
{
    static const struct {
        ptrdiff_t step, head;
        int64_t heads;
    } forms[] = {
        {256, 0, 1}, {2048, 0, 1}, {-256, 0, 1}, {-4096, 0, 1}, {0, 0, 1},
        {2048, 256, 8}, {-2048, 256, 8}, {2048, -256, 7}, {1280, 256, 5}, {1100, 260, 4},
        {4096, 512, 3}, {512, 256, 2}, {256, 16384, 2}, {-4096, -272, 6},
    };
    enum { FORMS = sizeof(forms) / sizeof(forms[0]) };
    struct test_guard memory = test_guard_new(TILE * 4096), nowhere = test_guard_new(1);
    struct test_random random = {10};
    (void)state;
    for (int n = 0; n < 2 * FORMS * 2; n++) {
        const ptrdiff_t step = forms[n / 2 % FORMS].step, head = forms[n / 2 % FORMS].head;
        const int64_t heads = forms[n / 2 % FORMS].heads;
        const ptrdiff_t along = (TILE - 1) * step, across = (heads - 1) * head;
        const ptrdiff_t before = (along < 0 ? -along : 0) + (across < 0 ? -across : 0);
        const ptrdiff_t after = (along > 0 ? along : 0) + (across > 0 ? across : 0) + 2 * WIDTH;
        char *at = test_guard_at(&memory, (size_t)(before + after), 2,
                                 n / 2 < FORMS ? TEST_AT_END : TEST_AT_START);
        struct even e = {.nowhere = (char *)nowhere.map, .step = step, .head = head,
                         .heads = heads, .rows = 1, .dtype = n % 2 ? POSENC_F16 : POSENC_BF16};
        at += before;
        e.at = at;
        for (int64_t i = 0; i < TILE * heads * WIDTH; i++)
            test_store(at + i / WIDTH / heads * step + i / WIDTH % heads * head, e.dtype, i % WIDTH,
                       test_unit(&random) * (float)(1 + i / WIDTH % 5));
        check_even_on_all(&e);
    }
    test_guard_free(&nowhere);
    test_guard_free(&memory);
}

/* What is written behind the chains would seldom be seen: most calls leave room unused there. */
static void heads_in_the_order_of_memory_have_room_for_chains(void **state)
{
    static _Alignas(64) char memory[1 << 16];
    struct posenc_attention_needs needs = {
        .channels = WIDTH, .values = WIDTH, .wide_q = 1, .together = 8, .in_order = 1};
    struct posenc_attention_room room;
    (void)state;
    assert_in_range(posenc_attention_room(&room, &needs, 8, 1, 0, memory), 1, sizeof(memory));
    const size_t chains = 8 * WIDTH * sizeof(float);
    const char *begin = (char *)room.spare, *const others[] = {
        (char *)room.w, (char *)room.a, (char *)room.o, (char *)room.begin, (char *)room.end,
        (char *)room.hidden, (char *)room.wide_q};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_true(others[i] < begin || others[i] >= begin + chains);
    assert_true(begin + chains <= memory + sizeof(memory));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fetching_beside_whole_tiles_of_the_usual_width_changes_no_bit),
        cmocka_unit_test(fetching_changes_no_bit),
        cmocka_unit_test(even_tiles_have_the_bits_of_tables),
        cmocka_unit_test(heads_in_the_order_of_memory_have_room_for_chains),
    };
    return cmocka_run_group_tests(tests, make_guards, free_guards);
}
