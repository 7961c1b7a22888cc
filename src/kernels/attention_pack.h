/* SPDX-License-Identifier: MIT */
/*
 * Tiles of stored keys and values as the block kernels of attention want them.
 *
 * Template. Before the inclusion:
 *   vec.h of the ISA    gives POSENC_LANES and the operations for it
 *   KERNEL(name)        the name of an attention kernel of this ISA
 * It defines the tables KERNEL(pack) and KERNEL(widen), which attention_kernels.h describes.
 */
#include "../attention_kernels.h"
#include "attention_chains.h"

#define POSENC_INLINE inline __attribute__((always_inline))
#define N POSENC_LANES
#include "element.h"

enum { TILE = POSENC_ATTENTION_TILE, PAIRS = POSENC_CHAIN_PAIRS };

/* As many rows as lanes. */
struct square {
    FLOATS row[N];
};

/* A stored key or value, of I8 with its scales: see struct posenc_attention_scales. */
struct stored {
    const char *row;
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

/* A vector never has channels of two groups: 32 is a multiple of N, and so is c. */
static POSENC_INLINE FLOATS load_whole(struct stored x, int64_t c, int dtype)
{
    if (dtype == POSENC_I8)
        return LANES(mul)(LANES(load_i8)((const int8_t *)x.row + c),
                          LANES(set1)(x.scale[c >> x.shift]));
    return LANES(load)(x.row, (size_t)c, dtype);
}

/* The channels from c on, zeros behind the last. All types but F32 are copied first: not every ISA
 * loads parts of such vectors. */
static POSENC_INLINE FLOATS load_row(struct stored x, int64_t c, int64_t channels, int dtype)
{
    const int64_t size = dtype == POSENC_I8 ? 1 : 2;
    char rest[N * 2] = {0};
    if (channels - c >= N)
        return load_whole(x, c, dtype);
    if (dtype == POSENC_F32)
        return LANES(load_first)((const float *)(const void *)x.row + c, channels - c);
    memcpy(rest, x.row + c * size, (size_t)((channels - c) * size));
    if (dtype == POSENC_I8)
        return LANES(mul)(LANES(load_i8)((const int8_t *)rest),
                          LANES(set1)(x.scale[c >> x.shift]));
    return LANES(load)(rest, 0, dtype);
}

/* Zipping each row with the one half the height below, log2(N) times, transposes. */
static POSENC_INLINE struct square transpose(struct square a)
{
#pragma GCC unroll 4
    for (int done = 1; done < N; done *= 2) {
        struct square b;
#pragma GCC unroll 8
        for (int i = 0; i < N / 2; i++) {
            b.row[2 * i] = LANES(zip_lower)(a.row[i], a.row[i + N / 2]);
            b.row[2 * i + 1] = LANES(zip_upper)(a.row[i], a.row[i + N / 2]);
        }
        a = b;
    }
    return a;
}

/* The slots [slot, slot + N) of the channels [c, c + N), channel by channel. */
static POSENC_INLINE void pack_square(const void *const *key,
                                      struct posenc_attention_scales scales, int64_t begin,
                                      int64_t end, int64_t slot, int64_t c, int64_t channels,
                                      float *const *pair, int dtype)
{
    struct square a;
    if (begin <= slot && slot + N <= end && channels - c >= N) {
#pragma GCC unroll 16
        for (int i = 0; i < N; i++)
            a.row[i] = load_whole(stored_at(key, scales, slot + i, dtype), c, dtype);
    } else {
#pragma GCC unroll 16
        for (int i = 0; i < N; i++)
            a.row[i] = begin <= slot + i && slot + i < end
                           ? load_row(stored_at(key, scales, slot + i, dtype), c, channels, dtype)
                           : LANES(set1)(0.0f);
    }
    a = transpose(a);
#pragma GCC unroll 16
    for (int64_t i = 0; i < N; i++)
        if (i < channels - c)
            LANES(store_f32)(pair[(c + i) % PAIRS] + (c + i) / PAIRS * TILE + slot, a.row[i]);
}

static POSENC_INLINE void pack(const void *const *key,
                               struct posenc_attention_scales scales, int64_t begin,
                               int64_t end, int64_t channels, float *packed, int dtype)
{
    float *pair[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        pair[posenc_pair_order[i]] = packed;
        packed += posenc_pair_length(posenc_pair_order[i], channels) * TILE;
    }
    for (int64_t c = 0; c < channels; c += N)
        for (int64_t slot = 0; slot < TILE; slot += N)
            pack_square(key, scales, begin, end, slot, c, channels, pair, dtype);
}

static POSENC_INLINE void widen(const void *const *value,
                                struct posenc_attention_scales scales, int64_t begin,
                                int64_t end, int64_t values, float *wide, int dtype)
{
    int64_t padded = posenc_attention_padded(values);
    for (int64_t slot = begin; slot < end; slot++) {
        const struct stored x = stored_at(value, scales, slot, dtype);
        float *to = wide + slot * padded;
        int64_t c = 0;
        for (; c + N <= values; c += N)
            LANES(store_f32)(to + c, load_whole(x, c, dtype));
        if (c < values) {
            LANES(store_f32)(to + c, load_row(x, c, values, dtype));
            c += N;
        }
        for (; c < padded; c += N)
            LANES(store_f32)(to + c, LANES(set1)(0.0f));
    }
}

#define PACK_AND_WIDEN(dtype)                                                                      \
    static void pack_##dtype(const void *const *key, struct posenc_attention_scales scales,        \
                             int64_t begin, int64_t end, int64_t channels, float *packed)          \
    {                                                                                              \
        pack(key, scales, begin, end, channels, packed, POSENC_##dtype);                           \
    }                                                                                              \
    static void widen_##dtype(const void *const *value, struct posenc_attention_scales scales,     \
                              int64_t begin, int64_t end, int64_t values, float *wide)             \
    {                                                                                              \
        widen(value, scales, begin, end, values, wide, POSENC_##dtype);                            \
    }

PACK_AND_WIDEN(F32)
PACK_AND_WIDEN(F16)
PACK_AND_WIDEN(BF16)
PACK_AND_WIDEN(I8)

posenc_attention_pack *const KERNEL(pack)[POSENC_ATTENTION_TYPES] = {pack_F32, pack_F16, pack_BF16,
                                                                     pack_I8};
posenc_attention_widen *const KERNEL(widen)[POSENC_ATTENTION_TYPES] = {widen_F32, widen_F16,
                                                                       widen_BF16, widen_I8};

#undef PACK_AND_WIDEN
#include "element_end.h"
