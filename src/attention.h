/* SPDX-License-Identifier: MIT */
/* What the attention kernels share: the sizes of the fixed summation order, 2^x and tanh. */
#ifndef POSENC_ATTENTION_H
#define POSENC_ATTENTION_H

#include "kernels.h"

/*
 * The order of operations, and with it every bit of the result, hangs on these: docs/attention.md.
 * Tiles and spans are anchored at logical key 0.
 */
enum {
    POSENC_ATTENTION_CHAINS = 16,     /* partial sums of a score and of the denominator */
    POSENC_ATTENTION_TILE = 64,       /* keys that share one rescaling */
    POSENC_ATTENTION_CHANNELS = 4096, /* the widest head */
};

/*
 * 2^x for x <= 0 or NaN: n = rint(x) by adding and taking away 1.5 * 2^23, then a polynomial of
 * x - n on [-1/2, 1/2], then times 2^n. Minimax of the relative error (Remez) with constant term 1,
 * each coefficient rounded to float before the next was fitted: within 0.12 * 2^-24 of 2^x by
 * itself, 1.18 * 2^-24 as evaluated. Below 2^-126 the result is +0: no subnormal, no time lost.
 */
#define POSENC_LOG2E 0x1.715476p+0f
#define POSENC_RINT_MAGIC 0x1.8p+23f
#define POSENC_EXP2_LOWEST (-126.0f)
#define POSENC_EXP2_1 0x1.62e432p-1f
#define POSENC_EXP2_2 0x1.ebfbe6p-3f
#define POSENC_EXP2_3 0x1.c6ada8p-5f
#define POSENC_EXP2_4 0x1.3b21c8p-7f
#define POSENC_EXP2_5 0x1.5fbfd0p-10f
#define POSENC_EXP2_6 0x1.4c13e0p-13f

/*
 * T(x) = tanh x in float: the sign of x on a result for a = |x|. Each operation is rounded by
 * itself, fma once.
 *
 *     a < 0.625:  z = a a; p = a Horner chain of fma over the coefficients from TANH_11 (of z^4)
 *                 down to TANH_3 (of z^0); fma(a z, p, a)
 *     otherwise:  e = E(a (-2 LOG2E)); (1 - e) / (1 + e)
 *
 * So both can be computed and one selected. The polynomial is minimax of the relative error
 * (Remez), each coefficient rounded to float before the next was fitted: within 0.08 * 2^-24 of
 * tanh by itself. As evaluated, over all floats: 1.27 * 2^-24 and 0.78 ulp below 0.625,
 * 3.13 * 2^-24 and 1.89 ulp above, and it never falls there. T(+-inf) is +-1, NaN stays, T(+-0)
 * is +-0.
 */
#define POSENC_TANH_NEAR 0.625f
#define POSENC_TANH_3 (-0x1.555532p-2f)
#define POSENC_TANH_5 0x1.1106f6p-3f
#define POSENC_TANH_7 (-0x1.b835a4p-5f)
#define POSENC_TANH_9 0x1.51f8cep-6f
#define POSENC_TANH_11 (-0x1.750ce4p-8f)

/* The NaN of every result: payloads and signs differ between machines. */
#define POSENC_CANONICAL_NAN UINT32_C(0x7fc00000)

/* Adds 8 and 8, then 4 and 4, 2 and 2, 1 and 1. */
static inline float posenc_halving_tree(const float part[POSENC_ATTENTION_CHAINS])
{
    float sum[POSENC_ATTENTION_CHAINS];
    memcpy(sum, part, sizeof(sum));
    for (int half = POSENC_ATTENTION_CHAINS / 2; half > 0; half /= 2)
        for (int r = 0; r < half; r++)
            sum[r] = sum[r] + sum[r + half];
    return sum[0];
}

#endif
