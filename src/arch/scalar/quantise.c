/* SPDX-License-Identifier: MIT */
/* I8 in plain C: the fallback everywhere, and the oracle of the others. */
#include "../../attention.h"
#include "../../quantise.h"

static inline uint32_t largest_of(const float *y, size_t n)
{
    uint32_t largest = 0;
    for (size_t c = 0; c < n; c++) {
        uint32_t magnitude = posenc_bits32(y[c]) & UINT32_C(0x7fffffff);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

static inline int8_t nearest(float t)
{
    t = t < POSENC_I8_LARGEST ? t : POSENC_I8_LARGEST;
    t = t > -POSENC_I8_LARGEST ? t : -POSENC_I8_LARGEST;
    return (int8_t)(t + POSENC_RINT_MAGIC - POSENC_RINT_MAGIC);
}

void posenc_quantise_scalar(const float *y, size_t groups, size_t group, int8_t *q, void *scales,
                            int32_t scale_dtype)
{
    for (size_t g = 0; g < groups; g++, y += group, q += group) {
        float d = posenc_i8_put_scale(largest_of(y, group), scales, g, scale_dtype);
        for (size_t c = 0; c < group; c++)
            q[c] = d > 0 ? nearest(y[c] / d) : 0;
    }
}

void posenc_dequantise_scalar(const int8_t *q, const void *scales, int32_t scale_dtype,
                              size_t groups, size_t group, float *y)
{
    for (size_t g = 0; g < groups; g++, y += group, q += group) {
        float d = posenc_i8_scale(scales, g, scale_dtype);
        for (size_t c = 0; c < group; c++)
            y[c] = (float)q[c] * d;
    }
}
