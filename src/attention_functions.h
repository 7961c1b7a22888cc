/* SPDX-License-Identifier: MIT */
/* 2^x and tanh of attention, one number at a time: their definition, and the plain C of it. */
#ifndef POSENC_ATTENTION_FUNCTIONS_H
#define POSENC_ATTENTION_FUNCTIONS_H

#include "attention.h"
#include "fma.h"

/* E(x) of docs/attention.md, for x <= 0 or NaN. */
static inline float posenc_attention_exp2(float x)
{
    if (x < POSENC_EXP2_LOWEST)
        return 0.0f;
    float shifted = x + POSENC_RINT_MAGIC, n = shifted - POSENC_RINT_MAGIC, f = x - n;
    float p = POSENC_EXP2_6;
    p = posenc_fmaf(p, f, POSENC_EXP2_5);
    p = posenc_fmaf(p, f, POSENC_EXP2_4);
    p = posenc_fmaf(p, f, POSENC_EXP2_3);
    p = posenc_fmaf(p, f, POSENC_EXP2_2);
    p = posenc_fmaf(p, f, POSENC_EXP2_1);
    p = posenc_fmaf(p, f, 1.0f);
    /* The lowest bits of `shifted` are n. Multiplied, not added to the exponent: p may be NaN. */
    return p * posenc_float((posenc_bits32(shifted) << 23) + 0x3f800000u);
}

/* e^(score - m): what a score weighs relative to the maximum m. */
static inline float posenc_attention_weight(float score, float m)
{
    return posenc_attention_exp2((score - m) * POSENC_LOG2E);
}

/* T(x) of src/attention.h. */
static inline float posenc_attention_tanh(float x)
{
    float a = posenc_float(posenc_bits32(x) & 0x7fffffffu), y;
    if (a < POSENC_TANH_NEAR) {
        float z = a * a, p = POSENC_TANH_11;
        p = posenc_fmaf(p, z, POSENC_TANH_9);
        p = posenc_fmaf(p, z, POSENC_TANH_7);
        p = posenc_fmaf(p, z, POSENC_TANH_5);
        p = posenc_fmaf(p, z, POSENC_TANH_3);
        y = posenc_fmaf(a * z, p, a);
    } else {
        float e = posenc_attention_exp2(a * (-2.0f * POSENC_LOG2E));
        y = (1.0f - e) / (1.0f + e);
    }
    return posenc_float(posenc_bits32(y) | (posenc_bits32(x) & 0x80000000u));
}

static inline float posenc_canonical(float x)
{
    return x == x ? x : posenc_float(POSENC_CANONICAL_NAN);
}

#endif
