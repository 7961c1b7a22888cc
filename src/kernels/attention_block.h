/* SPDX-License-Identifier: MIT */
/*
 * The two products of attention for many rows and one tile: scores and sums of values.
 *
 * Template. Before the inclusion:
 *   vec.h of the ISA    gives POSENC_LANES, POSENC_REGISTERS and the operations for it
 *   KERNEL(name)        the name of an attention kernel of this ISA
 * It defines KERNEL(sums) and KERNEL(totals), which attention_kernels.h describes.
 *
 * Both are products of matrices, made from blocks that stay in registers: up to ROWS rows by up to
 * VECTORS vectors of slots or channels. Each lane goes its own chain, so that nothing but the order
 * of the steps of one chain is fixed. Rows, vectors: constants where the block is called.
 */
#include "../attention_kernels.h"
#include "attention_chains.h"

#define POSENC_INLINE inline __attribute__((always_inline))
#define N POSENC_LANES
#include "element.h"

enum {
    TILE = POSENC_ATTENTION_TILE,
    PAIRS = POSENC_CHAIN_PAIRS,
    ROWS = 6,
    VECTORS = POSENC_REGISTERS >= 32 ? 4 : 2,
    UNIT = 16 / N, /* vectors of 16 floats: what slots and channels are counted in */
    UNITS = VECTORS / UNIT,
    SUM_ROWS = POSENC_REGISTERS >= 32 ? 6 : 3, /* of sums, which have two chains under way */
    SUM_VECTORS = 2,
    DIFFERENT = 16 /* slots that only some rows of a block see: from here on one row at a time */
};

struct block {
    FLOATS at[ROWS][VECTORS];
};

/* How many rows from `first` on, ROWS at most, are not to be left alone. */
static int rows_from(int64_t first, int64_t rows, const uint8_t *begin, const uint8_t *end)
{
    int n = 0;
    while (n < ROWS && first + n < rows && begin[first + n] < end[first + n])
        n++;
    return n;
}

/* One chain of each sum. */
struct chains {
    FLOATS at[SUM_ROWS][SUM_VECTORS];
};

/* The keys' vectors are loaded once for all rows: by each product, they would be more loads than
 * the ports for them take in the time of the products. */
static POSENC_INLINE struct chains next_link(int rows, int vectors, const float *const *q,
                                             int64_t c, const float *packed, struct chains s)
{
    FLOATS k[SUM_VECTORS];
#pragma GCC unroll 2
    for (int j = 0; j < vectors; j++)
        k[j] = LANES(once)(LANES(load_f32)(packed + j * N));
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        FLOATS x = LANES(set1)(q[r][c]);
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            s.at[r][j] = LANES(fma)(x, k[j], s.at[r][j]);
    }
    return s;
}

static POSENC_INLINE struct chains no_links(int rows, int vectors)
{
    struct chains s;
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            s.at[r][j] = LANES(set1)(0.0f);
    return s;
}

/* The halving tree from its second level on. */
static POSENC_INLINE FLOATS add_pairs(const float *pair, int64_t step)
{
    FLOATS s[PAIRS];
#pragma GCC unroll 8
    for (int i = 0; i < PAIRS; i++)
        s[i] = LANES(load_f32)(pair + i * step);
#pragma GCC unroll 4
    for (int left = PAIRS / 2; left > 0; left /= 2)
#pragma GCC unroll 4
        for (int i = 0; i < left; i++)
            s[i] = LANES(add)(s[2 * i], s[2 * i + 1]);
    return s[0];
}

/*
 * Sums of `rows` rows with the `vectors` vectors of slots from `packed` on. Two chains that the
 * halving tree adds go side by side: one by itself would be stored twice as often, and a store
 * takes the place of a product on some CPUs.
 */
static POSENC_INLINE void sum_block(int rows, int vectors, const float *const *q, int64_t channels,
                                    const float *packed, float *sums)
{
    _Alignas(64) float pair[PAIRS][SUM_ROWS][SUM_VECTORS * N];
    for (int i = 0; i < PAIRS; i++) {
        struct chains a = no_links(rows, vectors), b = a;
        int64_t c = posenc_pair_order[i];
        for (; c + PAIRS < channels; c += 2 * PAIRS, packed += 2 * TILE) {
            a = next_link(rows, vectors, q, c, packed, a);
            b = next_link(rows, vectors, q, c + PAIRS, packed + TILE, b);
        }
        if (c < channels) {
            a = next_link(rows, vectors, q, c, packed, a);
            packed += TILE;
        }
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++)
                LANES(store_f32)(&pair[i][r][j * N], LANES(add)(a.at[r][j], b.at[r][j]));
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            LANES(store_f32)(sums + r * TILE + j * N,
                             add_pairs(&pair[0][r][j * N], SUM_ROWS * SUM_VECTORS * N));
}

/* The same with `slots` slots. */
static POSENC_INLINE void sum_blocks(int rows, const float *const *q, int64_t channels,
                                     const float *packed, float *sums, int64_t slots)
{
    for (; slots > N; slots -= 2 * N, packed += 2 * N, sums += 2 * N)
        sum_block(rows, 2, q, channels, packed, sums);
    if (slots > 0)
        sum_block(rows, 1, q, channels, packed, sums);
}

/* Rows one after the other, and what each sees: bit `slot` of seen. */
struct totals {
    const float *w, *a, *wide;
    float *o;
    int64_t padded;
    uint64_t seen[ROWS];
};

/*
 * Totals of `rows` rows in `vectors` vectors of channels. Runs of slots that all rows see take the
 * loop without a question; between them each row is asked. A weight that is not seen is never
 * multiplied: 0 times NaN is NaN, and -0 plus 0 is +0.
 */
static POSENC_INLINE void total_block(int rows, int vectors, const struct totals *t,
                                      int64_t channel)
{
    uint64_t any = 0, all = UINT64_MAX;
    struct block s;
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        any |= t->seen[r];
        all &= t->seen[r];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            s.at[r][j] = LANES(set1)(0.0f);
    }
    while (any) {
        int slot = __builtin_ctzll(any);
        const float *w = t->w + slot, *from = t->wide + slot * t->padded + channel;
        if (all >> slot & 1) {
            uint64_t gap = ~all >> slot;
            int end = gap ? slot + __builtin_ctzll(gap) : TILE;
            for (; slot < end; slot++, w++, from += t->padded) {
                FLOATS v[VECTORS];
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    v[j] = LANES(load_f32)(from + j * N);
#pragma GCC unroll 6
                for (int r = 0; r < rows; r++) {
                    FLOATS x = LANES(set1)(w[r * TILE]);
#pragma GCC unroll 4
                    for (int j = 0; j < vectors; j++)
                        s.at[r][j] = LANES(fma)(x, v[j], s.at[r][j]);
                }
            }
            any = end < TILE ? any >> end << end : 0;
        } else {
#pragma GCC unroll 6
            for (int r = 0; r < rows; r++) {
                if (!(t->seen[r] >> slot & 1))
                    continue;
                FLOATS x = LANES(set1)(w[r * TILE]);
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    s.at[r][j] = LANES(fma)(x, LANES(load_f32)(from + j * N), s.at[r][j]);
            }
            any &= any - 1;
        }
    }
    float *o = t->o + channel;
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++, o += t->padded) {
        FLOATS a = LANES(set1)(t->a[r]);
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            LANES(store_f32)(o + j * N, LANES(fma)(LANES(load_f32)(o + j * N), a, s.at[r][j]));
    }
}

/*
 * Each number of rows, of totals each size of block, is a function of its own: inlined into one,
 * they would share the registers of that one, and the widest would spill.
 */
typedef void sum_function(const float *const *q, int64_t channels, const float *packed,
                          float *sums, int64_t slots);
typedef void total_function(const struct totals *t, int64_t channel);

#define SUMS(name, rows)                                                                           \
    static __attribute__((noinline)) void sum_##name(const float *const *q, int64_t channels,      \
                                                     const float *packed, float *sums,             \
                                                     int64_t slots)                                \
    {                                                                                              \
        sum_blocks(rows, q, channels, packed, sums, slots);                                        \
    }

SUMS(most, SUM_ROWS)
SUMS(two, 2)
SUMS(one, 1)

#define BLOCK(rows, units)                                                                         \
    static __attribute__((noinline)) void total_##rows##_##units(const struct totals *t,           \
                                                                 int64_t channel)                  \
    {                                                                                              \
        total_block(rows, units * UNIT, t, channel);                                               \
    }

#if POSENC_LANES == 16
#define BLOCKS(rows) BLOCK(rows, 1) BLOCK(rows, 2) BLOCK(rows, 3) BLOCK(rows, 4)
#define BY_UNITS(name) {name##_1, name##_2, name##_3, name##_4}
#else
#define BLOCKS(rows) BLOCK(rows, 1)
#define BY_UNITS(name) {name##_1}
#endif

BLOCKS(6)
BLOCKS(2)
BLOCKS(1)

/* [size], [units - 1] */
enum { SIZES = 3 };
static const int size_rows[SIZES] = {ROWS, 2, 1};
static total_function *const total_blocks[SIZES][UNITS] = {BY_UNITS(total_6), BY_UNITS(total_2),
                                                           BY_UNITS(total_1)};

static const int sum_size_rows[SIZES] = {SUM_ROWS, 2, 1};
static sum_function *const sum_functions[SIZES] = {sum_most, sum_two, sum_one};

/* The size of the next block where `left` rows of a group of `rows` are left. */
static int next_size(int rows, int left)
{
    return rows == ROWS ? 0 : left > 1 ? 1 : 2;
}

/* The rows from r on, with the slots that one of them sees. */
static void sum_rows(int size, const struct posenc_attention_products *job, int64_t r)
{
    int64_t begin = TILE, end = 0;
    for (int i = 0; i < sum_size_rows[size]; i++) {
        begin = job->begin[r + i] < begin ? job->begin[r + i] : begin;
        end = job->end[r + i] > end ? job->end[r + i] : end;
    }
    int64_t slot = begin / N * N;
    sum_functions[size](job->q + r, job->channels, job->packed + slot,
                        job->sums + r * TILE + slot, end - slot);
}

void KERNEL(sums)(const struct posenc_attention_products *job)
{
    for (int64_t r = 0, rows; r < job->rows; r += rows ? rows : 1) {
        rows = rows_from(r, job->rows, job->begin, job->end);
        for (int i = 0, size; i < rows; i += sum_size_rows[size]) {
            size = rows - i >= SUM_ROWS ? 0 : rows - i > 1 ? 1 : 2;
            sum_rows(size, job, r + i);
        }
    }
}

/* Five times 16 channels are three and two: one by itself has too few chains to keep the pipeline
 * busy. */
static void total_rows(int size, const struct posenc_attention_totals *job, int64_t r,
                       const uint64_t *seen)
{
    const int64_t padded = posenc_attention_padded(job->values);
    struct totals t = {job->w + r * TILE, job->a + r, job->wide, job->o + r * padded, padded, {0}};
    for (int i = 0; i < size_rows[size]; i++)
        t.seen[i] = seen[i];
    for (int64_t c = 0, units; c < padded; c += units * 16) {
        int64_t left = (padded - c) / 16;
        units = left < UNITS ? left : left == UNITS + 1 && UNITS > 2 ? UNITS - 1 : UNITS;
        total_blocks[size][units - 1](&t, c);
    }
}

void KERNEL(totals)(const struct posenc_attention_totals *job)
{
    for (int64_t r = 0, rows; r < job->rows; r += rows ? rows : 1) {
        uint64_t seen[ROWS], all = UINT64_MAX, any = 0;
        rows = rows_from(r, job->rows, job->begin, job->end);
        for (int i = 0; i < rows; i++) {
            seen[i] = UINT64_MAX >> (TILE - job->end[r + i]) & UINT64_MAX << job->begin[r + i];
            if (job->hidden)
                seen[i] &= ~job->hidden[r + i];
            all &= seen[i];
            any |= seen[i];
        }
        int alone = __builtin_popcountll(any & ~all) > DIFFERENT;
        for (int i = 0, size; i < rows; i += size_rows[size]) {
            size = alone ? 2 : next_size((int)rows, (int)rows - i);
            total_rows(size, job, r + i, &seen[i]);
        }
    }
}

#undef SUMS
#undef BLOCK
#undef BLOCKS
#undef BY_UNITS
#include "element_end.h"
