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
