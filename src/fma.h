/* SPDX-License-Identifier: MIT */
/* An exact fmaf: the machine's where it has one, otherwise in double, without libm or fenv. */
#ifndef POSENC_FMA_H
#define POSENC_FMA_H

#include "common.h"

#if defined(__FMA__) || defined(__aarch64__) || defined(__FP_FAST_FMAF)

static inline float posenc_fmaf(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

#else

/*
 * a*b is exact in double (24 + 24 bits). p + c is rounded once to double and would be rounded a
 * second time to float; rounding it to odd instead (set the last bit when something was lost) makes
 * the second rounding right, because double keeps more than two extra bits, subnormal floats
 * included (Boldo and Melquiond 2008). The lost part is that of the two-sum.
 */
static inline float posenc_fmaf(float a, float b, float c)
{
    double p = (double)a * b, x = c, sum = p + x;
    double virtual_x = sum - p, lost = (p - (sum - virtual_x)) + (x - virtual_x);
    uint64_t bits = posenc_bits64(sum);
    /* NaN compares false on both sides: infinities and NaNs pass unchanged. */
    if ((lost < 0 || lost > 0) && !(bits & 1))
        bits += ((lost > 0) == (sum > 0)) ? 1 : (uint64_t)-1;
    return (float)posenc_double(bits);
}

#endif

#endif
