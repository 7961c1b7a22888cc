/* SPDX-License-Identifier: MIT */
/* The oracle of the self-check: the formulas in long double, sharing no code with the library. */
#include "truth.h"

#include <math.h>
#include <posenc/posenc.h>

/*
 * position x inv_freq has 31 + 53 bits: too many for most long doubles. So the frequency is cut
 * into its leading 22 bits, whose product is exact even in double, and a rest that is at most 2^-22
 * of it; the addition theorem joins both. Where long double is double (armhf) the product with the
 * rest rounds by at most 2^-53 x 2^31 x 2^-22 = 2^-44, a millionth of what a row may be off.
 */
void truth_angle(int64_t position, double inv_freq, long double *cosine, long double *sine)
{
    int exponent;
    double fraction = frexp(inv_freq, &exponent);
    double head = ldexp(trunc(ldexp(fraction, 22)), exponent - 22);
    long double a = (long double)position * head;
    long double b = (long double)position * (inv_freq - head);
    long double ca = cosl(a), sa = sinl(a), cb = cosl(b), sb = sinl(b);
    *cosine = ca * cb - sa * sb;
    *sine = sa * cb + ca * sb;
}

double truth_row_bound(double attention_factor)
{
    double bound = 0x1p-24 * 0.501;
    return attention_factor > 1 ? ldexp(bound, (int)ceil(log2(attention_factor))) : bound;
}

/* Half a unit in the last place of a 16-bit type at the magnitude of x. */
static long double half_ulp(int32_t dtype, long double x)
{
    int digits = dtype == POSENC_F16 ? 11 : 8, least = dtype == POSENC_F16 ? -14 : -126;
    int exponent = least;
    if (x != 0)
        exponent = ilogbl(x);
    if (exponent < least)
        exponent = least;
    return ldexpl(1, exponent - digits);
}

long double truth_rotation_bound(double attention_factor, float a, float b, int32_t dtype,
                                 long double value)
{
    double factor = attention_factor > 1 ? attention_factor : 1;
    long double bound =
        3 * 0x1p-24L * factor * (fabsl((long double)a) + fabsl((long double)b)) + 0x1p-149L;
    if (dtype != POSENC_F32)
        bound += half_ulp(dtype, fabsl(value) + bound);
    return bound;
}
