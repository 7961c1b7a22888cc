/* SPDX-License-Identifier: MIT */
/*
 * The direct kernels of attention_kernels.h: few rows, keys and values read as they lie.
 *
 * Template. Before the inclusion: vec.h of the ISA, and KERNEL(name), the name of an attention
 * kernel of this ISA. Rows, vectors and dtypes are constants where an inline function is called.
 *
 * Lanes are channels in both products. The sixteen chains of a score are one AVX-512 register, two
 * of AVX2, four of NEON. What is loaded is converted once for up to ROWS rows. What the caller
 * wants fetched is asked for line by line between the products: of many lines at once some wait,
 * and the products behind them as well.
 */
#include "attention_vector.h"

#include "attention_fetch.h"
#include "attention_quad.h"

enum { ROWS = POSENC_REGISTERS >= 32 ? 4 : 2 };

/* The same four keys, or vectors of channels, for up to four rows. */
struct quads {
    struct quad r0, r1, r2, r3;
};

static POSENC_INLINE struct quad add_quad(struct quad x, struct quad y)
{
    return (struct quad){V(add_)(x.a, y.a), V(add_)(x.b, y.b), V(add_)(x.c, y.c),
                         V(add_)(x.d, y.d)};
}

static POSENC_INLINE struct quads add_quads(int rows, struct quads x, struct quads y)
{
    struct quads s = x;
    s.r0 = add_quad(x.r0, y.r0);
    if (rows > 1)
        s.r1 = add_quad(x.r1, y.r1);
    if (rows > 2) {
        s.r2 = add_quad(x.r2, y.r2);
        s.r3 = add_quad(x.r3, y.r3);
    }
    return s;
}

/*
 * The chains part*LANES, ... of up to four rows with four keys. Zeros pad the last channels: a
 * chain can only change from -0 to +0 by that, and no weight depends on the sign of a zero score.
 * asks: for each line of `ahead`, which NEVER leaves unread.
 */
static POSENC_INLINE struct quads chains(int rows, int dtype, const float *const *q,
                                         const void *const *key,
                                         struct posenc_attention_scales scales, int64_t channels,
                                         int part, int asks, struct rows_ahead ahead)
{
    const float *qa = q[0], *qb = rows > 1 ? q[1] : qa, *qc = rows > 2 ? q[2] : qa,
                *qd = rows > 2 ? q[3] : qa;
    const struct stored ka = stored_at(key, scales, 0, dtype);
    const struct stored kb = stored_at(key, scales, 1, dtype);
    const struct stored kc = stored_at(key, scales, 2, dtype);
    const struct stored kd = stored_at(key, scales, 3, dtype);
    struct quads s = {zero_quad(), zero_quad(), zero_quad(), zero_quad()};
    int64_t i = part * LANES;
#pragma GCC unroll 8
    for (; i + LANES <= channels; i += CHAINS) {
        struct quad k = {load_stored(ka, i, dtype), load_stored(kb, i, dtype),
                         load_stored(kc, i, dtype), load_stored(kd, i, dtype)};
        int64_t done = part * (channels / CHAINS) + i / CHAINS;
        int64_t from = lines_by(dtype, done), to = lines_by(dtype, done + 1);
        if (asks)
            fetch_lines(dtype, asks, ahead, channels, from, (from + to + 1) / 2);
        s.r0 = fma_quad(V(load_f32_)(qa + i), k, s.r0);
        if (rows > 1)
            s.r1 = fma_quad(V(load_f32_)(qb + i), k, s.r1);
        if (asks)
            fetch_lines(dtype, asks, ahead, channels, (from + to + 1) / 2, to);
        if (rows > 2) {
            s.r2 = fma_quad(V(load_f32_)(qc + i), k, s.r2);
            s.r3 = fma_quad(V(load_f32_)(qd + i), k, s.r3);
        }
    }
    if (i < channels) {
        int64_t n = channels - i;
        struct quad k = {load_stored_rest(ka, i, n, dtype), load_stored_rest(kb, i, n, dtype),
                         load_stored_rest(kc, i, n, dtype), load_stored_rest(kd, i, n, dtype)};
        s.r0 = fma_quad(V(load_first_)(qa + i, n), k, s.r0);
        if (rows > 1)
            s.r1 = fma_quad(V(load_first_)(qb + i, n), k, s.r1);
        if (rows > 2) {
            s.r2 = fma_quad(V(load_first_)(qc + i, n), k, s.r2);
            s.r3 = fma_quad(V(load_first_)(qd + i, n), k, s.r3);
        }
    }
    return s;
}

static POSENC_INLINE void put_sums(float *sums, struct quad s)
{
    store_f32_4(sums, V(sum_each_)(s.a, s.b, s.c, s.d));
}

#if POSENC_LANES == 16
static POSENC_INLINE vector fours(struct quad s)
{
    return fours_of_each_16(s.a, s.b, s.c, s.d);
}
#endif

/* Four sums of each row. The first steps of the halving tree add whole vectors. */
static POSENC_INLINE void four_sums(int rows, int dtype, const float *const *q,
                                    const void *const *key, struct posenc_attention_scales scales,
                                    int64_t channels, int asks, struct rows_ahead ahead,
                                    float *sums)
{
    struct quads s = chains(rows, dtype, q, key, scales, channels, 0, asks, ahead);
    if (PARTS == 2)
        s = add_quads(rows, s, chains(rows, dtype, q, key, scales, channels, 1, asks, ahead));
    if (PARTS == 4) {
        s = add_quads(rows, s, chains(rows, dtype, q, key, scales, channels, 2, asks, ahead));
        struct quads odd = chains(rows, dtype, q, key, scales, channels, 1, asks, ahead);
        odd = add_quads(rows, odd,
                        chains(rows, dtype, q, key, scales, channels, 3, asks, ahead));
        s = add_quads(rows, s, odd);
    }
#if POSENC_LANES == 16
    if (rows == 4) { /* 46 operations instead of 56 */
        store_sums_16(sums, TILE, fours(s.r0), fours(s.r1), fours(s.r2), fours(s.r3));
        return;
    }
#endif
    put_sums(sums, s.r0);
    if (rows > 1)
        put_sums(sums + TILE, s.r1);
    if (rows > 2) {
        put_sums(sums + 2 * TILE, s.r2);
        put_sums(sums + 3 * TILE, s.r3);
    }
}

#if POSENC_LANES == 16
#include "attention_four.h"
#endif

/* Sums of slots [j, j + 4) that the range covers in part, four floats a row. */
static POSENC_INLINE void put_some(int rows, const struct posenc_attention_direct_sums *job,
                                   int64_t first, int64_t j, const float *some)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < 4; i++)
            if (j + i >= job->begin && j + i < job->end)
                job->sums[(first + r) * TILE + j + i] = some[r * TILE + i];
}

/*
 * Four slots at a time; those before and after the range repeat one of it. The usual width is a
 * constant, so that each line to fetch has its place among the products, without a count or a
 * branch.
 */
static POSENC_INLINE void sum_rows(int rows, int dtype, int asks,
                                   const struct posenc_attention_direct_sums *job, int64_t first)
{
    const int often = asks && is_busy(rows, dtype) ? ONCE : asks;
#if POSENC_LANES == 16
    if (rows == 4 && asks == TWICE && are_usual(dtype, job)) {
        if (first == 0 && job->next.rows)
            sum_four_rows(dtype, often, job, first);
        else
            sum_four_rows(dtype, NEVER, job, first);
        return;
    }
#endif
    const struct rows_ahead none = {NULL, NULL, NULL};
    for (int64_t j = job->begin / 4 * 4; j < job->end; j += 4) {
        const int whole = j >= job->begin && j + 4 <= job->end;
        const void *const *next = first == 0 ? job->next.rows : NULL;
        const int64_t before = j < AGAIN ? j : j - AGAIN; /* no branch for the first four */
        if (whole && next && job->channels == WIDTH &&
            job->next.bytes == WIDTH * element_bytes(dtype)) {
            const int64_t near = j + NEAR_APART + 4 <= job->end ? j + NEAR_APART : j;
            four_sums(rows, dtype, job->q + first, job->key + j,
                      scales_from(job->scales, j, dtype), WIDTH, often,
                      (struct rows_ahead){next + j, next + before, job->key + near},
                      job->sums + first * TILE + j);
            continue;
        }
        for (int64_t i = 0; next && i < 4; i++) {
            fetch(next[j + i], 0, job->next.bytes);
            if (often == TWICE)
                fetch(next[before + i], 0, job->next.bytes);
        }
        if (whole) {
            four_sums(rows, dtype, job->q + first, job->key + j,
                      scales_from(job->scales, j, dtype), job->channels, NEVER, none,
                      job->sums + first * TILE + j);
            continue;
        }
        const void *key[4], *scale[4];
        for (int64_t i = 0; i < 4; i++) {
            int64_t slot = j + i < job->begin ? job->begin : j + i;
            slot = slot < job->end ? slot : job->end - 1;
            key[i] = job->key[slot];
            if (dtype == POSENC_I8)
                scale[i] = job->scales.at[slot];
        }
        float some[ROWS * TILE];
        four_sums(rows, dtype, job->q + first, key,
                  (struct posenc_attention_scales){scale, job->scales.shift}, job->channels,
                  NEVER, none, some);
        put_some(rows, job, first, j, some);
    }
}

static POSENC_INLINE void direct_sums(int dtype, int asks,
                                      const struct posenc_attention_direct_sums *job)
{
    int64_t r = 0;
    for (; ROWS > 2 && r + 4 <= job->rows; r += 4)
        sum_rows(4, dtype, asks, job, r);
    for (; r + 2 <= job->rows; r += 2)
        sum_rows(2, dtype, asks, job, r);
    if (r < job->rows)
        sum_rows(1, dtype, asks, job, r);
}

/*
 * What is fetched with each value of a pass over the channels: `bytes`, the first half before its
 * products. Rows that follow one another in memory are taken in its order from `start` on, so that
 * the machine sees one stream. Of other rows (start NULL) each pass takes its part of all, from
 * `at` on: whole ones are slower there.
 */
struct shared {
    const char *start;
    int64_t at, bytes, half;
};

/* Of rows of `row_bytes`, in the pass over `channels` of `values` channels that begins at c. */
static POSENC_INLINE struct shared shared_of(const void *const *next, int64_t row_bytes,
                                             int64_t values, int64_t channels, int64_t c)
{
    const int64_t passes = values / channels, pass = c / channels;
    const int64_t bytes = (row_bytes / passes + LINE - 1) / LINE * LINE;
    const char *row = next[0];
    struct shared share = {NULL, pass * bytes, bytes, bytes / 2 / LINE * LINE};
    if (next[1] == row + row_bytes && next[TILE - 1] == row + (TILE - 1) * row_bytes)
        share.start = row + pass * TILE * bytes;
    return share;
}

static POSENC_INLINE const char *row_of(struct shared share, const void *const *next, int64_t j)
{
    return share.start ? share.start + j * share.bytes : (const char *)next[j] + share.at;
}

/* Totals of `rows` rows in four vectors of channels, or of one row in eight. usual: what is fetched
 * are rows of the usual width like the values, so that their lines are a constant. */
static POSENC_INLINE void total_quads(int rows, int wide, int usual, int asks, int dtype,
                                      const struct posenc_attention_direct_totals *job,
                                      int64_t padded, int64_t first, int64_t c)
{
    struct quads s = {zero_quad(), zero_quad(), zero_quad(), zero_quad()};
    const float *w = job->w + first * TILE;
    const void *const *next = first == 0 ? job->next.rows : NULL;
    struct shared share = {0};
    if (usual)
        share = shared_of(next, WIDTH * element_bytes(dtype), WIDTH, (wide ? 8 : 4) * LANES, c);
    else if (next)
        share = shared_of(next, job->next.bytes, job->values, (wide ? 8 : 4) * LANES, c);
    for (int64_t j = job->begin; j < job->end; j++) {
        const struct stored value = stored_at(job->value, job->scales, j, dtype);
        struct quad v = load_quad(value, c, dtype);
        const char *row = NULL;
        if (usual || next) {
            row = row_of(share, next, j);
            fetch(row, 0, share.half);
        }
        const int64_t near = j + (share.start ? NEAR_IN_ORDER : NEAR_APART);
        if (usual && (share.start || asks == TWICE) && near < job->end)
            bring(job->value[near], c * element_bytes(dtype), share.bytes);
        s.r0 = fma_quad(V(set1_)(w[j]), v, s.r0);
        if (wide)
            s.r1 = fma_quad(V(set1_)(w[j]), load_quad(value, c + 4 * LANES, dtype), s.r1);
        if (rows > 1)
            s.r1 = fma_quad(V(set1_)(w[TILE + j]), v, s.r1);
        if (usual || next) {
            fetch(row, share.half, share.bytes);
            if (asks == TWICE && !is_busy(rows, dtype) && j >= job->begin + AGAIN)
                fetch(row_of(share, next, j - AGAIN), 0, share.bytes);
        }
        if (rows > 2) {
            s.r2 = fma_quad(V(set1_)(w[2 * TILE + j]), v, s.r2);
            s.r3 = fma_quad(V(set1_)(w[3 * TILE + j]), v, s.r3);
        }
    }
    float *o = job->o + first * padded + c;
    const float *a = job->a + first;
    add_chains(o, a[0], s.r0, dtype);
    if (wide)
        add_chains(o + 4 * LANES, a[0], s.r1, dtype);
    if (rows > 1)
        add_chains(o + padded, a[1], s.r1, dtype);
    if (rows > 2) {
        add_chains(o + 2 * padded, a[2], s.r2, dtype);
        add_chains(o + 3 * padded, a[3], s.r3, dtype);
    }
}

/* One row, one vector of channels, n of them there. */
static POSENC_INLINE void total_vector(int dtype, const struct posenc_attention_direct_totals *job,
                                       int64_t padded, int64_t r, int64_t c, int64_t n)
{
    vector s = V(set1_)(0.0f);
    for (int64_t j = job->begin; j < job->end; j++) {
        const struct stored value = stored_at(job->value, job->scales, j, dtype);
        vector v = n < LANES ? load_stored_rest(value, c, n, dtype) : load_stored(value, c, dtype);
        s = V(fma_)(V(set1_)(job->w[r * TILE + j]), v, s);
    }
    add_chain(job->o + r * padded + c, V(set1_)(job->a[r]), s);
}

static POSENC_INLINE void total_rows(int rows, int dtype, int asks,
                                     const struct posenc_attention_direct_totals *job,
                                     int64_t padded, int64_t first)
{
    int64_t c = 0, n = job->values;
    if (first == 0 && job->next.rows && n == WIDTH &&
        job->next.bytes == WIDTH * element_bytes(dtype)) {
        const int wide = rows == 1 && 8 * LANES <= WIDTH;
        for (; c < WIDTH; c += (wide ? 8 : 4) * LANES)
            total_quads(rows, wide, 1, asks, dtype, job, padded, first, c);
        return;
    }
    for (; rows == 1 && c + 8 * LANES <= n; c += 8 * LANES)
        total_quads(1, 1, 0, asks, dtype, job, padded, first, c);
    for (; c + 4 * LANES <= n; c += 4 * LANES)
        total_quads(rows, 0, 0, asks, dtype, job, padded, first, c);
    for (; c < n; c += LANES)
        for (int64_t r = first; r < first + rows; r++)
            total_vector(dtype, job, padded, r, c, n - c);
}

static POSENC_INLINE void direct_totals(int dtype, int asks,
                                        const struct posenc_attention_direct_totals *job)
{
    int64_t r = 0, padded = posenc_attention_padded(job->values);
    for (; ROWS > 2 && r + 4 <= job->rows; r += 4)
        total_rows(4, dtype, asks, job, padded, r);
    for (; r + 2 <= job->rows; r += 2)
        total_rows(2, dtype, asks, job, padded, r);
    if (r < job->rows)
        total_rows(1, dtype, asks, job, padded, r);
}

/* Each in a function of its own: two in one take each other's registers. */
#define DIRECT(dtype, asks)                                                                        \
    static __attribute__((noinline)) void sums_##dtype##_##asks(                                   \
        const struct posenc_attention_direct_sums *job)                                            \
    {                                                                                              \
        direct_sums(POSENC_##dtype, asks, job);                                                    \
    }                                                                                              \
    static __attribute__((noinline)) void totals_##dtype##_##asks(                                 \
        const struct posenc_attention_direct_totals *job)                                          \
    {                                                                                              \
        direct_totals(POSENC_##dtype, asks, job);                                                  \
    }
/* Integers are asked for once: docs/performance.md. */
#define EITHER(dtype)                                                                              \
    DIRECT(dtype, ONCE)                                                                            \
    DIRECT(dtype, TWICE)                                                                           \
    static void sums_##dtype(const struct posenc_attention_direct_sums *job)                       \
    {                                                                                              \
        (job->next.again ? sums_##dtype##_TWICE : sums_##dtype##_ONCE)(job);                       \
    }                                                                                              \
    static void totals_##dtype(const struct posenc_attention_direct_totals *job)                   \
    {                                                                                              \
        (job->next.again ? totals_##dtype##_TWICE : totals_##dtype##_ONCE)(job);                   \
    }

EITHER(F32)
EITHER(F16)
EITHER(BF16)
DIRECT(I8, ONCE)

posenc_attention_direct_sums_kernel *const KERNEL(direct_sums)[POSENC_ATTENTION_TYPES] = {
    sums_F32, sums_F16, sums_BF16, sums_I8_ONCE};
posenc_attention_direct_totals_kernel *const KERNEL(direct_totals)[POSENC_ATTENTION_TYPES] = {
    totals_F32, totals_F16, totals_BF16, totals_I8_ONCE};

#undef DIRECT
#undef EITHER
#include "attention_vector_end.h"
