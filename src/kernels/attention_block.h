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

static POSENC_INLINE struct group next_group(int64_t *next, int64_t rows, const uint8_t *begin,
                                             const uint8_t *end)
{
    struct group g = {.rows = 0};
    for (; *next < rows && g.rows < ROWS; ++*next)
        if (begin[*next] < end[*next])
            g.row[g.rows++] = *next;
    return g;
}

/* The numbers 0 to 15 with their four bits in reverse. */
static const uint8_t chain_order[CHAINS] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

/*
 * Sums of `rows` rows with the `vectors` vectors of slots from `packed` on. The chains are taken in
 * the order of their bits read backwards, so that each two which the halving tree adds come one
 * after the other: like the bits of a counter, the i-th finishes as many levels as i ends in ones.
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
        for (int64_t c = chain_order[i]; c < channels; c += CHAINS) {
            FLOATS k[VECTORS];
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                k[j] = LANES(load_f32)(packed + c * TILE + j * N);
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

/* `units` times 16 slots. */
static POSENC_INLINE void sum_units(int rows, int64_t units, const float *const *q,
                                    int64_t channels, const float *packed, float *const *sums)
{
    if (UNITS == 1 || units == UNITS)
        sum_block(rows, VECTORS, q, channels, packed, sums);
    else if (units == 3)
        sum_block(rows, 3 * UNIT, q, channels, packed, sums);
    else if (units == 2)
        sum_block(rows, 2 * UNIT, q, channels, packed, sums);
    else
        sum_block(rows, UNIT, q, channels, packed, sums);
}

/* `rows` rows of a group, from its row `first` on, with the slots that one of them sees. */
static POSENC_INLINE void sum_rows(int rows, const struct posenc_attention_sums *job,
                                   const struct group *g, int first)
{
    const float *q[ROWS];
    float *sums[ROWS];
    int64_t begin = TILE, end = 0, units;
    for (int i = 0; i < rows; i++) {
        int64_t r = g->row[first + i];
        q[i] = job->q[r];
        sums[i] = job->sums + r * TILE;
        begin = job->begin[r] < begin ? job->begin[r] : begin;
        end = job->end[r] > end ? job->end[r] : end;
    }
    for (int64_t slot = begin / 16 * 16; slot < end; slot += units * 16) {
        float *to[ROWS];
        for (int i = 0; i < rows; i++)
            to[i] = sums[i] + slot;
        units = (end - slot + 15) / 16;
        units = units < UNITS ? units : UNITS;
        sum_units(rows, units, q, job->channels, job->packed + slot, to);
    }
}

void KERNEL(sums)(const struct posenc_attention_sums *job)
{
    for (int64_t next = 0; next < job->rows;) {
        struct group g = next_group(&next, job->rows, job->begin, job->end);
        int i = 0;
        if (g.rows == ROWS) {
            sum_rows(ROWS, job, &g, 0);
            continue;
        }
        for (; i + 2 <= g.rows; i += 2)
            sum_rows(2, job, &g, i);
        if (i < g.rows)
            sum_rows(1, job, &g, i);
    }
}

/* A row, and what it sees: bit `slot` of seen. */
struct totals {
    const float *w;
    float *o;
    float a;
    uint64_t seen;
};

static POSENC_INLINE struct totals row_totals(const struct posenc_attention_totals *job, int64_t r,
                                              int64_t padded)
{
    uint64_t range = UINT64_MAX >> (TILE - job->end[r]) & UINT64_MAX << job->begin[r];
    return (struct totals){job->w + r * TILE, job->o + r * padded, job->a[r],
                           job->hidden ? range & ~job->hidden[r] : range};
}

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

/* The rows [first, first + rows) of a group. */
static POSENC_INLINE void total_rows(int rows, const struct totals *group, int first,
                                     const float *wide, int64_t padded)
{
    const struct totals *t = &group[first];
    int64_t c = 0;
    for (; c + VECTORS * N <= padded; c += VECTORS * N)
        total_block(rows, VECTORS, t, wide, padded, c);
    if (UNITS > 1 && c + 2 * UNIT * N <= padded) {
        total_block(rows, 2 * UNIT, t, wide, padded, c);
        c += 2 * UNIT * N;
    }
    if (UNITS > 1 && c < padded)
        total_block(rows, UNIT, t, wide, padded, c);
}

void KERNEL(totals)(const struct posenc_attention_totals *job)
{
    int64_t padded = (job->values + 15) / 16 * 16;
    for (int64_t next = 0; next < job->rows;) {
        struct group g = next_group(&next, job->rows, job->begin, job->end);
        struct totals t[ROWS];
        uint64_t all = UINT64_MAX, any = 0;
        int i = 0;
        for (; i < g.rows; i++) {
            t[i] = row_totals(job, g.row[i], padded);
            all &= t[i].seen;
            any |= t[i].seen;
        }
        i = 0;
        if (__builtin_popcountll(any & ~all) <= DIFFERENT) {
            if (g.rows == ROWS) {
                total_rows(ROWS, t, 0, job->wide, padded);
                continue;
            }
            for (; i + 2 <= g.rows; i += 2)
                total_rows(2, t, i, job->wide, padded);
        }
        for (; i < g.rows; i++)
            total_rows(1, t, i, job->wide, padded);
    }
}

#undef N
#undef POSENC_PASTE_
#undef POSENC_PASTE
#undef POSENC_TYPE_
#undef POSENC_TYPE
#undef LANES
#undef FLOATS
#undef BF16S
