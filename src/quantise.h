/* SPDX-License-Identifier: MIT */
/* The scales of I8: how one follows from a group of channels, what it is as a float. */
#ifndef POSENC_QUANTISE_H
#define POSENC_QUANTISE_H

#include "float16.h"

/*
 * The largest stored integer, and the largest scales: of F16 the largest there is, of F32 the
 * largest of which 127 times is finite. -128 is not used: a scale would need another formula.
 */
#define POSENC_I8_LARGEST 127.0f
#define POSENC_I8_SCALE_F16 65504.0f
#define POSENC_I8_SCALE_F32 0x1.020406p+121f

static inline float posenc_i8_scale(const void *scales, size_t at, int32_t dtype)
{
    return dtype == POSENC_F16 ? posenc_f16_to_f32(((const uint16_t *)scales)[at])
                               : ((const float *)scales)[at];
}

/*
 * Stores scale `at` of a group and returns it as a float: d, or NaN if the group holds a NaN or an
 * infinity. `largest` has the bits of the largest magnitude, of which NaN counts as the largest.
 */
static inline float posenc_i8_put_scale(uint32_t largest, void *scales, size_t at, int32_t dtype)
{
    float d = posenc_float(largest) / POSENC_I8_LARGEST;
    float limit = dtype == POSENC_F16 ? POSENC_I8_SCALE_F16 : POSENC_I8_SCALE_F32;
    if (largest >= UINT32_C(0x7f800000))
        d = posenc_float(UINT32_C(0x7fc00000));
    else if (d > limit)
        d = limit;
    if (dtype == POSENC_F16)
        ((uint16_t *)scales)[at] = posenc_f32_to_f16(d);
    else
        ((float *)scales)[at] = d;
    return posenc_i8_scale(scales, at, dtype);
}

#endif
