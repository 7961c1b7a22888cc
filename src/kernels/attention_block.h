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
    CHAINS = POSENC_ATTENTION_CHAINS,
    ROWS = 6,
    VECTORS = POSENC_REGISTERS >= 32 ? 4 : 2,
    UNIT = 16 / N, /* vectors of 16 floats: what slots and channels are counted in */
    UNITS = VECTORS / UNIT,
    LEVELS = 4,    /* of the halving tree */
    DIFFERENT = 16 /* slots that only some rows of a block see: from here on one row at a time */
};

struct block {
    FLOATS at[ROWS][VECTORS];
};

/* Up to ROWS rows of a job that are not to be left alone. */
struct group {
    int64_t row[ROWS];
    int rows;
};

static struct group next_group(int64_t *next, int64_t rows, const uint8_t *begin,
                                             const uint8_t *end)
{
    struct group g = {.rows = 0};
    for (; *next < rows && g.rows < ROWS; ++*next)
        if (begin[*next] < end[*next])
            g.row[g.rows++] = *next;
    return g;
}

/*
 * Sums of `rows` rows with the `vectors` vectors of slots from `packed` on, one chain after the
 * other. Like the bits of a counter, the i-th chain finishes as many levels of the halving tree as
 * i ends in ones.
 */
static POSENC_INLINE void sum_block(int rows, int vectors, const float *const *q, int64_t channels,
                                    const float *packed, float *const *sums)
{
    _Alignas(64) float pending[LEVELS][ROWS][VECTORS * N];
    for (int i = 0; i < CHAINS; i++) {
        struct block s;
        int level = 0;
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                s.at[r][j] = LANES(set1)(0.0f);
        for (int64_t c = posenc_chain_order[i]; c < channels; c += CHAINS, packed += TILE) {
            FLOATS k[VECTORS];
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                k[j] = LANES(load_f32)(packed + j * N);
#pragma GCC unroll 6
            for (int r = 0; r < rows; r++) {
                FLOATS x = LANES(set1)(q[r][c]);
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    s.at[r][j] = LANES(fma)(x, k[j], s.at[r][j]);
            }
        }
        for (; i >> level & 1; level++)
#pragma GCC unroll 6
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    s.at[r][j] = LANES(add)(LANES(load_f32)(&pending[level][r][j * N]),
                                            s.at[r][j]);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            float *to = level == LEVELS ? sums[r] : pending[level][r];
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                LANES(store_f32)(to + j * N, s.at[r][j]);
        }
    }
}

/* A row, and what it sees: bit `slot` of seen. */
struct totals {
    const float *w;
    float *o;
    float a;
    uint64_t seen;
};

/*
 * Totals of `rows` rows in `vectors` vectors of channels. Runs of slots that all rows see take the
 * loop without a question; between them each row is asked. A weight that is not seen is never
 * multiplied: 0 times NaN is NaN, and -0 plus 0 is +0.
 */
static POSENC_INLINE void total_block(int rows, int vectors, const struct totals *t,
                                      const float *wide, int64_t padded, int64_t channel)
{
    uint64_t any = 0, all = UINT64_MAX;
    struct block s;
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        any |= t[r].seen;
        all &= t[r].seen;
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            s.at[r][j] = LANES(set1)(0.0f);
    }
    while (any) {
        int slot = __builtin_ctzll(any);
        const float *from = wide + slot * padded + channel;
        if (all >> slot & 1) {
            uint64_t gap = ~all >> slot;
            int end = gap ? slot + __builtin_ctzll(gap) : TILE;
            for (; slot < end; slot++, from += padded) {
                FLOATS v[VECTORS];
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    v[j] = LANES(load_f32)(from + j * N);
#pragma GCC unroll 6
                for (int r = 0; r < rows; r++) {
                    FLOATS w = LANES(set1)(t[r].w[slot]);
#pragma GCC unroll 4
                    for (int j = 0; j < vectors; j++)
                        s.at[r][j] = LANES(fma)(w, v[j], s.at[r][j]);
                }
            }
            any = end < TILE ? any >> end << end : 0;
        } else {
#pragma GCC unroll 6
            for (int r = 0; r < rows; r++) {
                if (!(t[r].seen >> slot & 1))
                    continue;
                FLOATS w = LANES(set1)(t[r].w[slot]);
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    s.at[r][j] = LANES(fma)(w, LANES(load_f32)(from + j * N), s.at[r][j]);
            }
            any &= any - 1;
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        FLOATS a = LANES(set1)(t[r].a);
        float *o = t[r].o + channel;
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            LANES(store_f32)(o + j * N, LANES(fma)(LANES(load_f32)(o + j * N), a, s.at[r][j]));
    }
}

/*
 * Each size of block is a function of its own: inlined into one, they would share the registers of
 * that one, and the widest would spill.
 */
typedef void sum_function(const float *const *q, int64_t channels, const float *packed,
                          float *const *sums);
typedef void total_function(const struct totals *t, const float *wide, int64_t padded,
                            int64_t channel);

#define BLOCK(rows, units)                                                                         \
    static __attribute__((noinline)) void sum_##rows##_##units(                                    \
        const float *const *q, int64_t channels, const float *packed, float *const *sums)          \
    {                                                                                              \
        sum_block(rows, units * UNIT, q, channels, packed, sums);                                  \
    }                                                                                              \
    static __attribute__((noinline)) void total_##rows##_##units(                                  \
        const struct totals *t, const float *wide, int64_t padded, int64_t channel)                \
    {                                                                                              \
        total_block(rows, units * UNIT, t, wide, padded, channel);                                 \
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
static sum_function *const sum_blocks[SIZES][UNITS] = {BY_UNITS(sum_6), BY_UNITS(sum_2),
                                                       BY_UNITS(sum_1)};
static total_function *const total_blocks[SIZES][UNITS] = {BY_UNITS(total_6), BY_UNITS(total_2),
                                                           BY_UNITS(total_1)};

/* The size of the next block where `left` rows of a group of `rows` are left. */
static int next_size(int rows, int left)
{
    return rows == ROWS ? 0 : left > 1 ? 1 : 2;
}

/* The rows [first, first + rows) of a group, with the slots that one of them sees. */
static void sum_rows(int size, const struct posenc_attention_products *job, const struct group *g,
                     int first)
{
    const float *q[ROWS];
    float *sums[ROWS];
    int64_t begin = TILE, end = 0, units;
    for (int i = 0; i < size_rows[size]; i++) {
        int64_t r = g->row[first + i];
        q[i] = job->q[r];
        begin = job->begin[r] < begin ? job->begin[r] : begin;
        end = job->end[r] > end ? job->end[r] : end;
    }
    for (int64_t slot = begin / 16 * 16; slot < end; slot += units * 16) {
        for (int i = 0; i < size_rows[size]; i++)
            sums[i] = job->sums + g->row[first + i] * TILE + slot;
        units = (end - slot + 15) / 16;
        units = units < UNITS ? units : UNITS;
        sum_blocks[size][units - 1](q, job->channels, job->packed + slot, sums);
    }
}

void KERNEL(sums)(const struct posenc_attention_products *job)
{
    for (int64_t next = 0; next < job->rows;) {
        struct group g = next_group(&next, job->rows, job->begin, job->end);
        for (int i = 0, size; i < g.rows; i += size_rows[size]) {
            size = next_size(g.rows, g.rows - i);
            sum_rows(size, job, &g, i);
        }
    }
}

static struct totals row_totals(const struct posenc_attention_totals *job, int64_t r,
                                              int64_t padded)
{
    uint64_t range = UINT64_MAX >> (TILE - job->end[r]) & UINT64_MAX << job->begin[r];
    return (struct totals){job->w + r * TILE, job->o + r * padded, job->a[r],
                           job->hidden ? range & ~job->hidden[r] : range};
}

/* Five times 16 channels are three and two: one by itself has too few chains to keep the pipeline
 * busy. */
static void total_rows(int size, const struct totals *t, const float *wide, int64_t padded)
{
    for (int64_t c = 0, units; c < padded; c += units * 16) {
        int64_t left = (padded - c) / 16;
        units = left < UNITS ? left : left == UNITS + 1 && UNITS > 2 ? UNITS - 1 : UNITS;
        total_blocks[size][units - 1](t, wide, padded, c);
    }
}

void KERNEL(totals)(const struct posenc_attention_totals *job)
{
    int64_t padded = posenc_attention_padded(job->values);
    for (int64_t next = 0; next < job->rows;) {
        struct group g = next_group(&next, job->rows, job->begin, job->end);
        struct totals t[ROWS];
        uint64_t all = UINT64_MAX, any = 0;
        for (int i = 0; i < g.rows; i++) {
            t[i] = row_totals(job, g.row[i], padded);
            all &= t[i].seen;
            any |= t[i].seen;
        }
        int alone = __builtin_popcountll(any & ~all) > DIFFERENT;
        for (int i = 0, size; i < g.rows; i += size_rows[size]) {
            size = alone ? 2 : next_size(g.rows, g.rows - i);
            total_rows(size, &t[i], job->wide, padded);
        }
    }
}

#undef BLOCK
#undef BLOCKS
#undef BY_UNITS
#include "element_end.h"
