/* SPDX-License-Identifier: MIT */
/*
 * I8 from floats and back.
 *
 * Template. Before the inclusion:
 *   vec.h of the ISA    gives POSENC_LANES and the operations for it
 *   KERNEL(name)        the name of a kernel of this ISA
 * It defines KERNEL(quantise) and KERNEL(dequantise), which kernels.h describes.
 */
#include "../kernels.h"
#include "../quantise.h"

#define POSENC_INLINE inline __attribute__((always_inline))
#define N POSENC_LANES
#include "element.h"

/* Magnitudes are compared as integers: NaN is above infinity then, and no order matters. */
static POSENC_INLINE uint32_t largest_of(const float *y, size_t n)
{
    FLOATS largest = LANES(set1)(0.0f);
    size_t c = 0;
    for (; c + N <= n; c += N)
        largest = LANES(max_bits)(LANES(magnitude)(LANES(load_f32)(y + c)), largest);
    if (c < n) {
        FLOATS rest = LANES(load_first)(y + c, (int64_t)(n - c));
        largest = LANES(max_bits)(LANES(magnitude)(rest), largest);
    }
    return LANES(max_bits_across)(largest);
}

static POSENC_INLINE void divide_group(const float *y, size_t n, FLOATS d, int8_t *q)
{
    size_t c = 0;
    for (; c + N <= n; c += N)
        LANES(store_i8)(q + c, LANES(div)(LANES(load_f32)(y + c), d));
    if (c < n) {
        int8_t rest[N];
        LANES(store_i8)(rest, LANES(div)(LANES(load_first)(y + c, (int64_t)(n - c)), d));
        memcpy(q + c, rest, n - c);
    }
}

void KERNEL(quantise)(const float *y, size_t groups, size_t group, int8_t *q, void *scales,
                      int32_t scale_dtype)
{
    for (size_t g = 0; g < groups; g++, y += group, q += group) {
        float d = posenc_i8_put_scale(largest_of(y, group), scales, g, scale_dtype);
        if (d > 0)
            divide_group(y, group, LANES(set1)(d), q);
        else
            memset(q, 0, group);
    }
}

static POSENC_INLINE void multiply_group(const int8_t *q, size_t n, FLOATS d, float *y)
{
    size_t c = 0;
    for (; c + N <= n; c += N)
        LANES(store_f32)(y + c, LANES(mul)(LANES(load_i8)(q + c), d));
    if (c < n) {
        int8_t rest[N] = {0};
        float done[N];
        memcpy(rest, q + c, n - c);
        LANES(store_f32)(done, LANES(mul)(LANES(load_i8)(rest), d));
        memcpy(y + c, done, (n - c) * sizeof(float));
    }
}

void KERNEL(dequantise)(const int8_t *q, const void *scales, int32_t scale_dtype, size_t groups,
                        size_t group, float *y)
{
    for (size_t g = 0; g < groups; g++, y += group, q += group)
        multiply_group(q, group, LANES(set1)(posenc_i8_scale(scales, g, scale_dtype)), y);
}

#include "element_end.h"
