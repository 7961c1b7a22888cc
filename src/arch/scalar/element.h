/* SPDX-License-Identifier: MIT */
/* Elements of any dtype as floats, for the plain kernels. */
#ifndef POSENC_SCALAR_ELEMENT_H
#define POSENC_SCALAR_ELEMENT_H

#include "../../float16.h"

static inline float get(const void *p, ptrdiff_t at, int dtype)
{
    if (dtype == POSENC_F32)
        return ((const float *)p)[at];
    uint16_t half = ((const uint16_t *)p)[at];
    return dtype == POSENC_F16 ? posenc_f16_to_f32(half) : posenc_bf16_to_f32(half);
}

static inline void put(void *p, ptrdiff_t at, int dtype, float x)
{
    if (dtype == POSENC_F32)
        ((float *)p)[at] = x;
    else
        ((uint16_t *)p)[at] = dtype == POSENC_F16 ? posenc_f32_to_f16(x) : posenc_f32_to_bf16(x);
}

#endif
