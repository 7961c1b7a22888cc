/* SPDX-License-Identifier: MIT */
/*
 * The direct kernels of attention_kernels.h: few rows, keys and values read as they lie.
 *
 * Template. Before the inclusion: vec.h of the ISA, and KERNEL(name), the name of an attention
 * kernel of this ISA. Rows, vectors and dtypes are constants where an inline function is called.
 *
 * Lanes are channels in both products. The sixteen chains of a score are one AVX-512 register, two
 * of AVX2, four of NEON. What is loaded is converted once for up to ROWS rows; what the caller
 * wants fetched is asked for row by row, one for each one that is read.
 */
#include "attention_vector.h"

enum { ROWS = POSENC_REGISTERS >= 32 ? 4 : 2, LINE = 64 };

/* The same four keys, or vectors of channels, for up to four rows. */
struct quads {
    struct quad r0, r1, r2, r3;
};

static POSENC_INLINE void fetch(const void *p, int64_t begin, int64_t end)
{
#pragma GCC unroll 4
    for (int64_t at = begin; at < end; at += LINE)
        __builtin_prefetch((const char *)p + at, 0, 2);
}

static POSENC_INLINE struct quad zero_quad(void)
{
    vector zero = V(set1_)(0.0f);
    return (struct quad){zero, zero, zero, zero};
}

static POSENC_INLINE struct quad fma_quad(vector x, struct quad y, struct quad s)
{
    return (struct quad){V(fma_)(x, y.a, s.a), V(fma_)(x, y.b, s.b), V(fma_)(x, y.c, s.c),
                         V(fma_)(x, y.d, s.d)};
}

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
 */
static POSENC_INLINE struct quads chains(int rows, int dtype, const float *const *q,
                                         const void *const *key,
                                         struct posenc_attention_scales scales, int64_t channels,
                                         int part)
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
        s.r0 = fma_quad(V(load_f32_)(qa + i), k, s.r0);
        if (rows > 1)
            s.r1 = fma_quad(V(load_f32_)(qb + i), k, s.r1);
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

/* Four sums of each row. The first steps of the halving tree add whole vectors. */
static POSENC_INLINE void four_sums(int rows, int dtype, const float *const *q,
                                    const void *const *key, struct posenc_attention_scales scales,
                                    int64_t channels, float *sums)
{
    struct quads s = chains(rows, dtype, q, key, scales, channels, 0);
    if (PARTS == 2)
        s = add_quads(rows, s, chains(rows, dtype, q, key, scales, channels, 1));
    if (PARTS == 4) {
        s = add_quads(rows, s, chains(rows, dtype, q, key, scales, channels, 2));
        struct quads odd = chains(rows, dtype, q, key, scales, channels, 1);
        s = add_quads(rows, s,
                      add_quads(rows, odd, chains(rows, dtype, q, key, scales, channels, 3)));
    }
    put_sums(sums, s.r0);
    if (rows > 1)
        put_sums(sums + TILE, s.r1);
    if (rows > 2) {
        put_sums(sums + 2 * TILE, s.r2);
        put_sums(sums + 3 * TILE, s.r3);
    }
}

/* Sums of slots [j, j + 4) that the range covers in part, four floats a row. */
static POSENC_INLINE void put_some(int rows, const struct posenc_attention_direct_sums *job,
                                   int64_t first, int64_t j, const float *some)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < 4; i++)
            if (j + i >= job->begin && j + i < job->end)
                job->sums[(first + r) * TILE + j + i] = some[r * TILE + i];
}

/* Four slots at a time; those before and after the range repeat one of it. */
static POSENC_INLINE void sum_rows(int rows, int dtype,
                                   const struct posenc_attention_direct_sums *job, int64_t first)
{
    for (int64_t j = job->begin / 4 * 4; j < job->end; j += 4) {
        if (job->next && first == 0)
            for (int64_t i = 0; i < 4; i++)
                fetch(job->next[j + i], 0, job->next_bytes);
        if (j >= job->begin && j + 4 <= job->end) {
            four_sums(rows, dtype, job->q + first, job->key + j,
                      scales_from(job->scales, j, dtype), job->channels,
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
                  (struct posenc_attention_scales){scale, job->scales.shift}, job->channels, some);
        put_some(rows, job, first, j, some);
    }
}

static POSENC_INLINE void direct_sums(int dtype, const struct posenc_attention_direct_sums *job)
{
    int64_t r = 0;
    for (; ROWS > 2 && r + 4 <= job->rows; r += 4)
        sum_rows(4, dtype, job, r);
    for (; r + 2 <= job->rows; r += 2)
        sum_rows(2, dtype, job, r);
    if (r < job->rows)
        sum_rows(1, dtype, job, r);
}

static POSENC_INLINE void add_chain(float *o, vector a, vector chain)
{
    V(store_f32_)(o, V(fma_)(V(load_f32_)(o), a, chain));
}

static POSENC_INLINE void add_chains(float *o, float a, struct quad s)
{
    vector scale = V(set1_)(a);
    add_chain(o, scale, s.a);
    add_chain(o + LANES, scale, s.b);
    add_chain(o + 2 * LANES, scale, s.c);
    add_chain(o + 3 * LANES, scale, s.d);
}

/* The values that all vectors of channels read, from channel c on. */
static POSENC_INLINE struct quad load_quad(struct stored value, int64_t c, int dtype)
{
    return (struct quad){load_stored(value, c, dtype), load_stored(value, c + LANES, dtype),
                         load_stored(value, c + 2 * LANES, dtype),
                         load_stored(value, c + 3 * LANES, dtype)};
}

/* Totals of `rows` rows in four vectors of channels, or of one row in eight. */
static POSENC_INLINE void total_quads(int rows, int wide, int dtype,
                                      const struct posenc_attention_direct_totals *job,
                                      int64_t padded, int64_t first, int64_t c)
{
    struct quads s = {zero_quad(), zero_quad(), zero_quad(), zero_quad()};
    const float *w = job->w + first * TILE;
    /* each pass over the values fetches its share */
    const int64_t channels = (wide ? 8 : 4) * LANES, end = c + channels;
    const int64_t from = c * job->next_bytes / job->values;
    const int64_t to = end + channels > job->values ? job->next_bytes
                                                    : end * job->next_bytes / job->values;
    for (int64_t j = job->begin; j < job->end; j++) {
        const struct stored value = stored_at(job->value, job->scales, j, dtype);
        struct quad v = load_quad(value, c, dtype);
        if (job->next && first == 0)
            fetch(job->next[j], from, to);
        s.r0 = fma_quad(V(set1_)(w[j]), v, s.r0);
        if (wide)
            s.r1 = fma_quad(V(set1_)(w[j]), load_quad(value, c + 4 * LANES, dtype), s.r1);
        if (rows > 1)
            s.r1 = fma_quad(V(set1_)(w[TILE + j]), v, s.r1);
        if (rows > 2) {
            s.r2 = fma_quad(V(set1_)(w[2 * TILE + j]), v, s.r2);
            s.r3 = fma_quad(V(set1_)(w[3 * TILE + j]), v, s.r3);
        }
    }
    float *o = job->o + first * padded + c;
    const float *a = job->a + first;
    add_chains(o, a[0], s.r0);
    if (wide)
        add_chains(o + 4 * LANES, a[0], s.r1);
    if (rows > 1)
        add_chains(o + padded, a[1], s.r1);
    if (rows > 2) {
        add_chains(o + 2 * padded, a[2], s.r2);
        add_chains(o + 3 * padded, a[3], s.r3);
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

static POSENC_INLINE void total_rows(int rows, int dtype,
                                     const struct posenc_attention_direct_totals *job,
                                     int64_t padded, int64_t first)
{
    int64_t c = 0, n = job->values;
    for (; rows == 1 && c + 8 * LANES <= n; c += 8 * LANES)
        total_quads(1, 1, dtype, job, padded, first, c);
    for (; c + 4 * LANES <= n; c += 4 * LANES)
        total_quads(rows, 0, dtype, job, padded, first, c);
    for (; c < n; c += LANES)
        for (int64_t r = first; r < first + rows; r++)
            total_vector(dtype, job, padded, r, c, n - c);
}

static POSENC_INLINE void direct_totals(int dtype, const struct posenc_attention_direct_totals *job)
{
    int64_t r = 0, padded = posenc_attention_padded(job->values);
    for (; ROWS > 2 && r + 4 <= job->rows; r += 4)
        total_rows(4, dtype, job, padded, r);
    for (; r + 2 <= job->rows; r += 2)
        total_rows(2, dtype, job, padded, r);
    if (r < job->rows)
        total_rows(1, dtype, job, padded, r);
}

#define DIRECT(dtype)                                                                              \
    static void sums_##dtype(const struct posenc_attention_direct_sums *job)                       \
    {                                                                                              \
        direct_sums(POSENC_##dtype, job);                                                          \
    }                                                                                              \
    static void totals_##dtype(const struct posenc_attention_direct_totals *job)                   \
    {                                                                                              \
        direct_totals(POSENC_##dtype, job);                                                        \
    }

DIRECT(F32)
DIRECT(F16)
DIRECT(BF16)
DIRECT(I8)

posenc_attention_direct_sums_kernel *const KERNEL(direct_sums)[POSENC_ATTENTION_TYPES] = {
    sums_F32, sums_F16, sums_BF16, sums_I8};
posenc_attention_direct_totals_kernel *const KERNEL(direct_totals)[POSENC_ATTENTION_TYPES] = {
    totals_F32, totals_F16, totals_BF16, totals_I8};

#undef DIRECT
#include "attention_vector_end.h"
