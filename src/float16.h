/* SPDX-License-Identifier: MIT */
/* f16 and bf16 as bits: widened exactly, rounded to nearest even, subnormals and NaN kept. */
#ifndef POSENC_FLOAT16_H
#define POSENC_FLOAT16_H

#include "common.h"

static inline float posenc_bf16_to_f32(uint16_t h)
{
    return posenc_float((uint32_t)h << 16);
}

static inline uint16_t posenc_f32_to_bf16(float x)
{
    uint32_t u = posenc_bits32(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40); /* quiet, so that no payload can vanish into infinity */
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float posenc_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fff;
    if (magnitude >= 0x7c00)
        return posenc_float(sign | magnitude << 13 | 0x7f800000u |
                            (magnitude > 0x7c00 ? 0x400000u : 0));
    if (magnitude < 0x400) /* zero or subnormal: an exact multiple of 2^-24 */
        return posenc_float(sign | posenc_bits32((float)magnitude * 0x1p-24f));
    return posenc_float(sign | ((magnitude << 13) + (112u << 23)));
}

static inline uint16_t posenc_f32_to_f16(float x)
{
    uint32_t u = posenc_bits32(x), magnitude = u & 0x7fffffffu;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000u) /* below 2^-14 one ulp is 2^-24: adding 0.5 rounds to it */
        return (uint16_t)(sign | (posenc_bits32(posenc_float(magnitude) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | ((magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

#endif
