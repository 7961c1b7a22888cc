/* SPDX-License-Identifier: MIT */
/* The block kernels of attention: the bits of plain loops, on every ISA, and nothing else read. */
#include "../src/attention_kernels.h"

#include "support/guard.h"
#include "support/half.h"
#include "support/random.h"
#include "support/test.h"
#include "support/view.h"

#include <math.h>

enum { TILE = 64, ROWS = 40, WIDEST = 576 };

/* Whole pages, so that what lies at the end of one is aligned to 64 bytes too. */
static struct test_guard area[4], row_area[TILE];

static int open_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        area[i] = test_guard_new(TILE * WIDEST * sizeof(float));
    for (int i = 0; i < TILE; i++)
        row_area[i] = test_guard_new(WIDEST * sizeof(float));
    return 0;
}

static int close_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        test_guard_free(&area[i]);
    for (int i = 0; i < TILE; i++)
        test_guard_free(&row_area[i]);
    return 0;
}

static float *floats_at_end(const struct test_guard *guard, int64_t count)
{
    return test_guard_at(guard, (size_t)count * sizeof(float), sizeof(float), TEST_AT_END);
}

/* Ordinary numbers, and among them zeros and such as underflow to -0 in a product. */
static float some_number(struct test_random *random)
{
    uint32_t kind = test_below(random, 40);
    float x = test_unit(random);
    return kind == 0 ? 0.0f : kind == 1 ? -0.0f : kind == 2 ? x * 0x1p-100f : x;
}

/* What must not take part. */
static float poison(struct test_random *random)
{
    return test_below(random, 3) ? NAN : INFINITY;
}

static void fill(float *to, int64_t count, struct test_random *random)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = some_number(random);
}

/* The tables that can run here: scalar has none. */
static size_t block_kernels(const struct posenc_attention_kernels *kernels[TEST_ISAS])
{
    int32_t isas[TEST_ISAS];
    size_t count = 0, all = test_isas(isas);
    for (size_t i = 0; i < all; i++) {
        kernels[count] = posenc_kernels_get(isas[i])->attention_tiles;
        if (isas[i] == POSENC_ISA_SCALAR)
            assert_null(kernels[count]);
        else
            assert_non_null(kernels[count++]);
    }
    assert_int_equal(count, all - 1);
    return count;
}

/* Where a packed tile has channel c: the channels c mod 8 side by side, these by their bits in
 * reverse. */
static int64_t place_of(int64_t c, int64_t channels)
{
    int64_t place = c / 8;
    for (int64_t i = 0; i < 8; i++) {
        int64_t r = (i & 1) * 4 + (i & 2) + (i >> 2);
        if (r == c % 8)
            return place;
        place += channels / 8 + (r < channels % 8);
    }
    return -1;
}

/* One stored element as it lies in memory, widened. */
static float widened(const void *row, int32_t dtype, int64_t c)
{
    return (float)test_load(row, dtype, c);
}

static void store_row(void *row, int32_t dtype, int64_t width, struct test_random *random)
{
    for (int64_t c = 0; c < width; c++)
        test_store(row, dtype, c, test_below(random, 50) ? some_number(random) : poison(random));
}

static void expect_packed(const float *packed, const void *const *key, int64_t begin, int64_t end,
                          int64_t channels, int32_t dtype)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t slot = 0; slot < TILE; slot++) {
            int inside = begin <= slot && slot < end;
            float expected = inside ? widened(key[slot], dtype, c) : 0.0f;
            if (!test_same(&expected, packed + place_of(c, channels) * TILE + slot, POSENC_F32, 1))
                fail_msg("dtype %d, %d channels, slots %d to %d: channel %d of slot %d", dtype,
                         (int)channels, (int)begin, (int)end, (int)c, (int)slot);
        }
}

static void expect_wide(const float *wide, const void *const *value, int64_t begin, int64_t end,
                        int64_t values, int32_t dtype)
{
    int64_t padded = (values + 15) / 16 * 16;
    float untouched;
    memset(&untouched, 0x7b, sizeof(untouched));
    for (int64_t slot = 0; slot < TILE; slot++)
        for (int64_t c = 0; c < padded; c++) {
            int inside = begin <= slot && slot < end;
            float expected = !inside ? untouched : c < values ? widened(value[slot], dtype, c) : 0;
            if (!test_same(&expected, wide + slot * padded + c, POSENC_F32, 1))
                fail_msg("dtype %d, %d values, slots %d to %d: channel %d of slot %d", dtype,
                         (int)values, (int)begin, (int)end, (int)c, (int)slot);
        }
}

static void check_stored(const struct posenc_attention_kernels *kernels, int32_t dtype,
                         int64_t width, int64_t begin, int64_t end, struct test_random *random)
{
    const void *row[TILE] = {NULL};
    int64_t padded = (width + 15) / 16 * 16;
    float *packed = floats_at_end(&area[0], width * TILE);
    float *wide = floats_at_end(&area[1], padded * TILE);
    const struct posenc_attention_scales none = {NULL, 0};
    memset(wide, 0x7b, (size_t)(padded * TILE) * sizeof(*wide));
    for (int64_t slot = begin; slot < end; slot++) {
        enum test_place place = slot % 3 ? TEST_AT_END : TEST_ODD;
        void *at = test_guard_at(&row_area[slot], (size_t)width * test_size(dtype),
                                 test_size(dtype), place);
        store_row(at, dtype, width, random);
        row[slot] = at;
    }
    kernels->pack[dtype - 1](row, none, begin, end, width, packed);
    expect_packed(packed, row, begin, end, width, dtype);
    kernels->widen[dtype - 1](row, none, begin, end, width, wide);
    expect_wide(wide, row, begin, end, width, dtype);
}

static void stored_rows_are_widened_in_place_of_their_slots(void **state)
{
    const struct posenc_attention_kernels *kernels[TEST_ISAS];
    size_t count = block_kernels(kernels);
    struct test_random random = {5};
    (void)state;
    for (size_t i = 0; i < count; i++)
        for (int32_t dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++) {
            for (int64_t width = 1; width <= 256; width += test_quick() ? 5 : 1) {
                int64_t begin = test_below(&random, TILE);
                int64_t end = begin + 1 + test_below(&random, (uint32_t)(TILE - begin));
                check_stored(kernels[i], dtype, width, begin, end, &random);
            }
            check_stored(kernels[i], dtype, WIDEST, 0, TILE, &random);
            for (int64_t begin = 0; begin < TILE; begin += test_quick() ? 7 : 1)
                for (int64_t end = begin + 1; end <= TILE; end += test_quick() ? 5 : 1)
                    check_stored(kernels[i], dtype, 17, begin, end, &random);
        }
}

/* How the rows of a case see the tile. */
enum pattern { SAME, STAIRS, WINDOW, HOLES, SIEVE, ANY, PATTERNS };

struct ranges {
    uint8_t begin[ROWS], end[ROWS];
    uint64_t hidden[ROWS];
};

static uint8_t clip(int64_t slot)
{
    return (uint8_t)(slot < 0 ? 0 : slot > TILE ? TILE : slot);
}

/* The ranges of `rows` rows around [begin, end); some rows of ANY see nothing. */
static struct ranges see(enum pattern pattern, int64_t rows, int64_t begin, int64_t end,
                         struct test_random *random)
{
    struct ranges x = {{0}, {0}, {0}};
    uint64_t hole = UINT64_C(1) << test_below(random, TILE);
    uint64_t holes = hole | UINT64_C(1) << test_below(random, TILE);
    for (int64_t r = 0; r < rows; r++) {
        x.begin[r] = clip(pattern == WINDOW ? begin + r : begin);
        x.end[r] = clip(pattern == STAIRS || pattern == WINDOW ? end + r : end);
        x.hidden[r] = pattern == HOLES ? holes : 0;
        if (pattern == SIEVE)
            x.hidden[r] = (uint64_t)test_bits(random) << 32 | test_bits(random);
        if (pattern == ANY) {
            x.begin[r] = (uint8_t)test_below(random, TILE + 1);
            x.end[r] = (uint8_t)test_below(random, TILE + 1);
            x.hidden[r] = test_below(random, 4) ? 0 : UINT64_C(3) << test_below(random, TILE - 1);
        }
    }
    return x;
}

/* Sixteen chains, then 8 and 8, 4 and 4, 2 and 2, 1 and 1. */
static float plain_sum(const float *q, const float *packed, int64_t channels)
{
    float part[16] = {0};
    for (int64_t c = 0; c < channels; c++)
        part[c % 16] = fmaf(q[c], packed[place_of(c, channels) * TILE], part[c % 16]);
    for (int half = 8; half > 0; half /= 2)
        for (int r = 0; r < half; r++)
            part[r] += part[r + half];
    return part[0];
}

static void check_sums(enum pattern pattern, int64_t rows, int64_t channels, int64_t begin,
                       int64_t end, struct test_random *random)
{
    const struct posenc_attention_kernels *kernels[TEST_ISAS];
    size_t count = block_kernels(kernels);
    struct ranges x = see(pattern, rows, begin, end, random);
    float *packed = floats_at_end(&area[0], channels * TILE);
    float *sums = floats_at_end(&area[1], rows * TILE);
    const float *q[ROWS] = {NULL};
    static float expected[ROWS][TILE];
    fill(packed, channels * TILE, random);
    for (int64_t slot = 0; slot < TILE; slot++)
        if (test_below(random, 10) == 0)
            packed[test_below(random, (uint32_t)channels) * TILE + slot] = poison(random);
    for (int64_t r = 0; r < rows; r++) {
        if (x.begin[r] >= x.end[r])
            continue;
        float *row = floats_at_end(&row_area[r], channels);
        fill(row, channels, random);
        for (int64_t slot = x.begin[r]; slot < x.end[r]; slot++)
            expected[r][slot] = plain_sum(row, packed + slot, channels);
        q[r] = row;
    }
    for (size_t i = 0; i < count; i++) {
        kernels[i]->block_sums(&(struct posenc_attention_products){rows, channels, q, packed,
                                                                   x.begin, x.end, sums});
        for (int64_t r = 0; r < rows; r++)
            for (int64_t slot = x.begin[r]; slot < x.end[r]; slot++)
                if (!test_same(&expected[r][slot], &sums[r * TILE + slot], POSENC_F32, 1))
                    fail_msg("table %zu, pattern %d, %d channels, slots %d to %d, row %d of %d: "
                             "%a at slot %d instead of %a", i, pattern, (int)channels, x.begin[r],
                             x.end[r], (int)r, (int)rows, (double)sums[r * TILE + slot],
                             (int)slot, (double)expected[r][slot]);
    }
}

static void sums_have_the_bits_of_sixteen_chains(void **state)
{
    struct test_random random = {6};
    (void)state;
    for (int64_t width = 1; width <= 256; width += test_quick() ? 9 : 1)
        check_sums(ANY, 1 + test_below(&random, ROWS), width, 0, 0, &random);
    for (int64_t rows = 1; rows <= ROWS; rows++)
        check_sums(SAME, rows, 40, 0, TILE, &random);
    check_sums(SAME, ROWS, WIDEST, 0, TILE, &random);
    for (int64_t begin = 0; begin < TILE; begin += test_quick() ? 7 : 1)
        for (int64_t end = begin + 1; end <= TILE; end += test_quick() ? 5 : 1)
            for (enum pattern pattern = SAME; pattern <= WINDOW; pattern++)
                check_sums(pattern, 9, 20, begin, end, &random);
}

static int seen(const struct ranges *x, int64_t r, int64_t slot)
{
    return x->begin[r] <= slot && slot < x->end[r] && !(x->hidden[r] >> slot & 1);
}

static float plain_total(const struct posenc_attention_totals *job, const struct ranges *x,
                         int64_t r, int64_t c, int64_t padded)
{
    float chain = 0;
    for (int64_t slot = 0; slot < TILE; slot++)
        if (seen(x, r, slot))
            chain = fmaf(job->w[r * TILE + slot], job->wide[slot * padded + c], chain);
    return fmaf(job->o[r * padded + c], job->a[r], chain);
}

/* Weights that nobody sees are poison, and so are values; one channel of a seen value may be. */
static void fill_totals(float *w, float *a, float *wide, const struct ranges *x, int64_t rows,
                        int64_t padded, struct test_random *random)
{
    uint64_t any = 0;
    for (int64_t r = 0; r < rows; r++) {
        int alone = x->begin[r] >= x->end[r];
        a[r] = alone ? poison(random) : some_number(random);
        for (int64_t slot = 0; slot < TILE; slot++) {
            int one = seen(x, r, slot);
            w[r * TILE + slot] = one ? some_number(random) : poison(random);
            any |= (uint64_t)one << slot;
        }
    }
    for (int64_t slot = 0; slot < TILE; slot++) {
        float *value = wide + slot * padded;
        for (int64_t c = 0; c < padded; c++)
            value[c] = any >> slot & 1 ? some_number(random) : poison(random);
        if (test_below(random, 20) == 0)
            value[test_below(random, (uint32_t)padded)] = poison(random);
    }
}

static void check_totals(enum pattern pattern, int64_t rows, int64_t values, int64_t begin,
                         int64_t end, struct test_random *random)
{
    const struct posenc_attention_kernels *kernels[TEST_ISAS];
    size_t count = block_kernels(kernels);
    struct ranges x = see(pattern, rows, begin, end, random);
    int64_t padded = (values + 15) / 16 * 16, floats = rows * padded;
    static float before[ROWS * WIDEST], expected[ROWS * WIDEST];
    float *w = floats_at_end(&area[0], rows * TILE), *a = floats_at_end(&row_area[0], rows);
    float *wide = floats_at_end(&area[1], TILE * padded), *o = floats_at_end(&area[2], floats);
    fill_totals(w, a, wide, &x, rows, padded, random);
    fill(before, floats, random);
    memcpy(expected, before, (size_t)floats * sizeof(*o));
    memcpy(o, before, (size_t)floats * sizeof(*o));
    int holes = pattern >= HOLES;
    struct posenc_attention_totals job = {rows,    values, w, a, wide, x.begin, x.end,
                                          holes ? x.hidden : NULL, o};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < padded && x.begin[r] < x.end[r]; c++)
            expected[r * padded + c] = plain_total(&job, &x, r, c, padded);
    for (size_t i = 0; i < count; i++) {
        memcpy(o, before, (size_t)floats * sizeof(*o));
        kernels[i]->block_totals(&job);
        for (int64_t k = 0; k < floats; k++)
            if (!test_same(expected + k, o + k, POSENC_F32, 1))
                fail_msg("table %zu, pattern %d, %d values, slots %d to %d, row %d of %d: %a in "
                         "channel %d instead of %a", i, pattern, (int)values, x.begin[k / padded],
                         x.end[k / padded], (int)(k / padded), (int)rows, (double)o[k],
                         (int)(k % padded), (double)expected[k]);
    }
}

static void totals_have_the_bits_of_one_chain(void **state)
{
    struct test_random random = {7};
    (void)state;
    for (int64_t width = 1; width <= 256; width += test_quick() ? 9 : 1)
        check_totals(ANY, 1 + test_below(&random, ROWS), width, 0, 0, &random);
    for (int64_t rows = 1; rows <= ROWS; rows++)
        for (enum pattern pattern = SAME; pattern < ANY; pattern++)
            check_totals(pattern, rows, 40, 5, TILE, &random);
    check_totals(SAME, ROWS, 512, 0, TILE, &random);
    for (int64_t begin = 0; begin < TILE; begin += test_quick() ? 7 : 1)
        for (int64_t end = begin + 1; end <= TILE; end += test_quick() ? 5 : 1)
            for (enum pattern pattern = SAME; pattern < ANY; pattern++)
                check_totals(pattern, 9, 20, begin, end, &random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_rows_are_widened_in_place_of_their_slots),
        cmocka_unit_test(sums_have_the_bits_of_sixteen_chains),
        cmocka_unit_test(totals_have_the_bits_of_one_chain),
    };
    return cmocka_run_group_tests(tests, open_memory, close_memory);
}
