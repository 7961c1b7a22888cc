/* SPDX-License-Identifier: MIT */
/* Single channels of any dtype, for the ends of rows that no vector fits. */
#ifndef POSENC_KERNELS_CHANNEL_H
#define POSENC_KERNELS_CHANNEL_H

#include "../float16.h"
#include "../fma.h"
#include "../kernels.h"

#define POSENC_INLINE inline __attribute__((always_inline))

static POSENC_INLINE size_t posenc_size(int dtype)
{
    return dtype == POSENC_F32 ? 4 : dtype == POSENC_I8 ? 1 : 2;
}

static POSENC_INLINE float posenc_load(const char *p, size_t at, int dtype)
{
    if (dtype == POSENC_F32)
        return ((const float *)(const void *)p)[at];
    uint16_t half = ((const uint16_t *)(const void *)p)[at];
    return dtype == POSENC_F16 ? posenc_f16_to_f32(half) : posenc_bf16_to_f32(half);
}

static POSENC_INLINE void posenc_store(char *p, size_t at, int dtype, float x)
{
    if (dtype == POSENC_F32)
        ((float *)(void *)p)[at] = x;
    else
        ((uint16_t *)(void *)p)[at] = dtype == POSENC_F16 ? posenc_f32_to_f16(x)
                                                          : posenc_f32_to_bf16(x);
}

#endif
