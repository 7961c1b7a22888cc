/* SPDX-License-Identifier: MIT */
/*
 * What the attention kernels of an ISA share: names for the widest vectors, loads of any dtype.
 *
 * Template. Before the inclusion, vec.h of the ISA gives POSENC_LANES (4, 8 and 16 are tested),
 * POSENC_REGISTERS and the operations. attention_vector_end.h takes the macros back.
 */
#include "../attention_kernels.h"
#include "channel.h"

#define POSENC_PASTE(a, b) a##b
#define POSENC_JOIN(a, b) POSENC_PASTE(a, b)
#define V(operation) POSENC_JOIN(operation, POSENC_LANES)
#define vector V(f32x)

enum {
    LANES = POSENC_LANES,
    CHAINS = POSENC_ATTENTION_CHAINS,
    PARTS = CHAINS / LANES, /* vectors that hold the chains of one score */
    TILE = POSENC_ATTENTION_TILE,
};

struct quad {
    vector a, b, c, d;
};

static POSENC_INLINE vector load_whole(const void *p, int64_t at, int dtype)
{
    switch (dtype) {
    case POSENC_F32:
        return V(load_f32_)((const float *)p + at);
    case POSENC_F16:
        return V(load_f16_)((const uint16_t *)p + at);
    default:
        return V(load_bf16_)((const uint16_t *)p + at);
    }
}

/* The first n < LANES elements from `at` on, then zeros; what lies behind them is not touched. */
static POSENC_INLINE vector load_rest(const void *p, int64_t at, int64_t n, int dtype)
{
    if (dtype == POSENC_F32)
        return V(load_first_)((const float *)p + at, n);
    float some[LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        some[i] = posenc_load(p, (size_t)(at + i), dtype);
    return V(load_f32_)(some);
}

/* A stored key or value, of I8 with its scales: see struct posenc_attention_scales. */
struct stored {
    const void *row;
    const float *scale;
    int shift;
};

static POSENC_INLINE struct stored stored_at(const void *const *row,
                                             struct posenc_attention_scales scales,
                                             int64_t slot, int dtype)
{
    if (dtype != POSENC_I8)
        return (struct stored){row[slot], NULL, 0};
    return (struct stored){row[slot], scales.at[slot], scales.shift};
}

/* Those of the slots from `slot` on. */
static POSENC_INLINE struct posenc_attention_scales
scales_from(struct posenc_attention_scales scales, int64_t slot, int dtype)
{
    if (dtype == POSENC_I8)
        scales.at += slot;
    return scales;
}

/* A vector never has channels of two groups: 32 is a multiple of LANES, and so is `at`. */
static POSENC_INLINE vector multiply_out(struct stored x, const int8_t *q, int64_t at)
{
    return V(mul_)(V(load_i8_)(q), V(set1_)(x.scale[at >> x.shift]));
}

static POSENC_INLINE vector load_stored(struct stored x, int64_t at, int dtype)
{
    return dtype == POSENC_I8 ? multiply_out(x, (const int8_t *)x.row + at, at)
                              : load_whole(x.row, at, dtype);
}

static POSENC_INLINE vector load_stored_rest(struct stored x, int64_t at, int64_t n, int dtype)
{
    int8_t some[LANES] = {0};
    if (dtype != POSENC_I8)
        return load_rest(x.row, at, n, dtype);
    memcpy(some, (const int8_t *)x.row + at, (size_t)n);
    return multiply_out(x, some, at);
}
