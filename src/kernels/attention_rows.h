/* SPDX-License-Identifier: MIT */
/*
 * The row kernels of attention_kernels.h: scores, weights, folding, division.
 *
 * Template. Before the inclusion: vec.h of the ISA, and KERNEL(name), the name of a kernel table.
 */
#include "attention_vector.h"

static const _Alignas(64) float slot_number[TILE] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* E(x) of attention.h */
static POSENC_INLINE vector power(vector x)
{
    vector magic = V(set1_)(POSENC_RINT_MAGIC);
    vector shifted = V(add_)(x, magic), f = V(sub_)(x, V(sub_)(shifted, magic));
    vector p = V(set1_)(POSENC_EXP2_6);
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_5));
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_4));
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_3));
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_2));
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_1));
    p = V(fma_)(p, f, V(set1_)(1.0f));
    return V(zero_below_)(x, V(set1_)(POSENC_EXP2_LOWEST), V(mul_)(p, V(power_of_two_)(shifted)));
}

static POSENC_INLINE vector weight(vector score, vector m)
{
    return power(V(mul_)(V(sub_)(score, m), V(set1_)(POSENC_LOG2E)));
}

/* T(x) of attention.h: both of its branches, and the sign of x. */
static POSENC_INLINE vector soften(vector x)
{
    vector a = V(magnitude_)(x), z = V(mul_)(a, a), one = V(set1_)(1.0f);
    vector p = V(set1_)(POSENC_TANH_11);
    p = V(fma_)(p, z, V(set1_)(POSENC_TANH_9));
    p = V(fma_)(p, z, V(set1_)(POSENC_TANH_7));
    p = V(fma_)(p, z, V(set1_)(POSENC_TANH_5));
    p = V(fma_)(p, z, V(set1_)(POSENC_TANH_3));
    vector near = V(fma_)(V(mul_)(a, z), p, a);
    vector e = power(V(mul_)(a, V(set1_)(-2.0f * POSENC_LOG2E)));
    vector far = V(div_)(V(sub_)(one, e), V(add_)(one, e));
    return V(with_sign_)(V(select_below_)(a, V(set1_)(POSENC_TANH_NEAR), near, far), x);
}

static POSENC_INLINE vector score(vector x, vector scale, int capped, vector cap, const float *bias)
{
    if (capped) {
        vector t = soften(V(mul_)(x, scale));
        return bias ? V(fma_)(t, cap, V(load_f32_)(bias)) : V(mul_)(t, cap);
    }
    return bias ? V(fma_)(x, scale, V(load_f32_)(bias)) : V(mul_)(x, scale);
}

static POSENC_INLINE uint64_t slots_between(int64_t begin, int64_t end)
{
    return ~UINT64_C(0) << begin & ~UINT64_C(0) >> (TILE - end);
}

enum { VECTORS = TILE / LANES, SOME = 16 };

/*
 * The scores of a row's tile from its sums, -inf where it sees nothing: such a slot has weight +0
 * and raises no maximum. Returns the hidden slots of its range. A tile stays in registers, hence
 * the loops without an end of their own.
 */
static POSENC_INLINE uint64_t row_scores(const struct posenc_attention_weights *job, int64_t r,
                                         int capped, vector s[VECTORS])
{
    const float *w = job->w + r * TILE, *bias = job->bias ? job->bias[r] : NULL;
    int64_t begin = job->begin[r], end = job->end[r];
    vector scale = V(set1_)(job->scale[r]), cap = V(set1_)(job->cap);
    vector nothing = V(set1_)(posenc_float(0xff800000u)), lowest = V(set1_)(-FLT_MAX);
    uint64_t hidden = 0;
#pragma GCC unroll 16
    for (int i = 0; i < VECTORS; i++)
        s[i] = score(V(load_f32_)(w + i * LANES), scale, capped, cap,
                     bias ? bias + i * LANES : NULL);
    if (bias)
#pragma GCC unroll 16
        for (int i = 0; i < VECTORS; i++) {
            vector b = V(load_f32_)(bias + i * LANES);
            hidden |= (uint64_t)V(bits_below_)(b, lowest) << i * LANES;
            s[i] = V(select_below_)(b, lowest, nothing, s[i]);
        }
    if (end - begin < TILE) {
        vector first = V(set1_)((float)begin), last = V(set1_)((float)end);
#pragma GCC unroll 16
        for (int i = 0; i < VECTORS; i++) {
            vector slot = V(load_f32_)(slot_number + i * LANES);
            s[i] = V(select_below_)(slot, first, nothing, s[i]);
            s[i] = V(select_below_)(slot, last, s[i], nothing);
        }
    }
    return hidden & slots_between(begin, end);
}

/* Scores instead of the sums of a row's tile. Returns the maximum, with the one before. */
static POSENC_INLINE float put_scores(const struct posenc_attention_weights *job, int64_t r,
                                      int capped)
{
    vector s[VECTORS], m = V(set1_)(job->m[r]);
    job->hidden[r] = row_scores(job, r, capped, s);
#pragma GCC unroll 16
    for (int i = 0; i < VECTORS; i++) {
        V(store_f32_)(job->w + r * TILE + i * LANES, s[i]);
        m = V(max_)(s[i], m);
    }
    return V(max_across_)(m);
}

/* Weights instead of the scores of a row's tile, and its sums and maximum with them. */
static POSENC_INLINE void put_weights(const struct posenc_attention_weights *job, int64_t r,
                                      float maximum)
{
    float *w = job->w + r * TILE, *l = job->l + r * CHAINS;
    vector m = V(set1_)(maximum), a = weight(V(set1_)(job->m[r]), m);
#pragma GCC unroll 16
    for (int chain = 0; chain < CHAINS / LANES; chain++) {
        vector sum = V(set1_)(0.0f);
#pragma GCC unroll 16
        for (int i = chain; i < VECTORS; i += CHAINS / LANES) {
            vector x = weight(V(load_f32_)(w + i * LANES), m);
            V(store_f32_)(w + i * LANES, x);
            sum = V(add_)(sum, x);
        }
        float *at = l + chain * LANES;
        V(store_f32_)(at, V(fma_)(V(load_f32_)(at), a, sum));
    }
    job->m[r] = maximum;
    job->a[r] = V(first_)(a);
}

/*
 * The rows from `first` on: all maxima, then all weights. A row's weights would wait for its
 * maximum, and while they wait no other row's fit into the CPU.
 */
static POSENC_INLINE uint64_t weigh_some(const struct posenc_attention_weights *job, int64_t first,
                                         int64_t rows, int capped)
{
    float maximum[SOME];
    uint64_t any = 0;
    for (int64_t i = 0, r = first; i < rows; i++, r++) {
        int64_t begin = job->begin[r], end = job->end[r];
        job->hidden[r] = 0;
        if (begin < end)
            maximum[i] = put_scores(job, r, capped);
        if (begin >= end || job->hidden[r] == slots_between(begin, end)) {
            job->begin[r] = job->end[r] = 0;
            job->hidden[r] = 0;
        }
        any |= job->hidden[r];
    }
    for (int64_t i = 0, r = first; i < rows; i++, r++)
        if (job->begin[r] < job->end[r])
            put_weights(job, r, maximum[i]);
    return any;
}

static POSENC_INLINE int weigh_rows(const struct posenc_attention_weights *job, int capped)
{
    uint64_t any = 0;
    for (int64_t r = 0; r < job->rows; r += SOME)
        any |= weigh_some(job, r, job->rows - r < SOME ? job->rows - r : SOME, capped);
    return any != 0;
}

int KERNEL(weights)(const struct posenc_attention_weights *job)
{
    return job->cap > 0 ? weigh_rows(job, 1) : weigh_rows(job, 0);
}

void KERNEL(shares)(const struct posenc_attention_weights *row, float m, float l)
{
    vector s[VECTORS];
    uint64_t hidden = row->cap > 0 ? row_scores(row, 0, 1, s) : row_scores(row, 0, 0, s);
    uint64_t seen = slots_between(row->begin[0], row->end[0]) & ~hidden;
    for (int i = 0; i < VECTORS; i++) {
        vector x = weight(s[i], V(set1_)(m));
        V(store_f32_)(row->w + i * LANES, V(canonical_nan_)(V(div_)(x, V(set1_)(l))));
    }
    /* l may be 0 or NaN, which is nothing to a slot that is not seen */
    for (int64_t j = 0; j < TILE; j++)
        if (!(seen >> j & 1))
            row->w[j] = 0.0f;
}

/* total = total a + span b, from +0 for the first span */
static POSENC_INLINE void fold_sums(int first, float *total, float *span, int64_t count, vector a,
                                    vector b)
{
    vector zero = V(set1_)(0.0f);
    for (int64_t i = 0; i < count; i += LANES) {
        vector x = V(mul_)(V(load_f32_)(span + i), b);
        V(store_f32_)(total + i, V(fma_)(first ? zero : V(load_f32_)(total + i), a, x));
        V(store_f32_)(span + i, zero);
    }
}

void KERNEL(fold)(int first, const struct posenc_attention_state *total,
                  const struct posenc_attention_state *span, int64_t values)
{
    float old = first ? -FLT_MAX : *total->m, m = *span->m > old ? *span->m : old;
    vector a = weight(V(set1_)(old), V(set1_)(m));
    vector b = weight(V(set1_)(*span->m), V(set1_)(m));
    fold_sums(first, total->l, span->l, CHAINS, a, b);
    fold_sums(first, total->o, span->o, values, a, b);
    *total->m = m;
    *span->m = -FLT_MAX;
}

void KERNEL(quotient)(const float *o, float l, int64_t values, float *out)
{
    for (int64_t c = 0; c < values; c += LANES) {
        vector y = V(div_)(V(load_f32_)(o + c), V(set1_)(l));
        V(store_f32_)(out + c, V(canonical_nan_)(y));
    }
}

#include "attention_vector_end.h"
