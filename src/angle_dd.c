/* SPDX-License-Identifier: MIT */
/* Cosine and sine in double-double, for rows of doubles and rows with a decay. */
#include "angle_dd.h"

/*
 * Taylor's series in z = x^2 <= (pi/4)^2. The first three coefficients are double-doubles. The rest
 * is a double: z^3 times it is below 2^-14 (sine) and 2^-11 (cosine), so that costs 2^-62. What is
 * cut off lies below 2^-68.
 */
static const posenc_dd SINE[2] = {{-0x1.5555555555555p-3, -0x1.5555555555555p-57},
                                  {0x1.1111111111111p-7, 0x1.1111111111111p-63}};
static const posenc_dd COSINE[2] = {{-0.5, 0}, {0x1.5555555555555p-5, 0x1.5555555555555p-59}};
static const double SINE_REST[7] = {-1.0 / 5040,
                                    1.0 / 362880,
                                    -1.0 / 39916800,
                                    1.0 / 6227020800,
                                    -1.0 / 1307674368000,
                                    1.0 / 355687428096000,
                                    -1.0 / 121645100408832000};
static const double COSINE_REST[7] = {-1.0 / 720,
                                      1.0 / 40320,
                                      -1.0 / 3628800,
                                      1.0 / 479001600,
                                      -1.0 / 87178291200,
                                      1.0 / 20922789888000,
                                      -1.0 / 6402373705728000};

/* 1 + z (first[0] + z (first[1] + z rest(z))) */
static posenc_dd series(posenc_dd z, const posenc_dd first[2], const double rest[7])
{
    double tail = rest[6];
    for (int i = 5; i >= 0; i--)
        tail = tail * z.hi + rest[i];
    posenc_dd sum = posenc_dd_mul(z, posenc_dd_from(tail));
    sum = posenc_dd_mul(z, posenc_dd_add(first[1], sum));
    sum = posenc_dd_mul(z, posenc_dd_add(first[0], sum));
    return posenc_dd_add(posenc_dd_from(1), sum);
}

/* The quarter turns go off in integers, as in posenc_sincos; the rest is exact in two doubles. */
void posenc_sincos_dd(struct posenc_turns a, posenc_dd *sine, posenc_dd *cosine)
{
    const uint64_t quarter = a.high + (UINT64_C(1) << 61), rest = a.high << 2 | a.low >> 30;
    const double top = (double)(int64_t)(rest & ~UINT64_C(0xffffffff));
    const posenc_dd low =
        posenc_dd_sum((double)(uint32_t)rest, (double)(a.low & 0x3fffffff) * 0x1p-30);
    posenc_dd x = posenc_dd_mul(posenc_dd_add(posenc_dd_from(top), low), posenc_dd_two_pi);
    x = (posenc_dd){x.hi * 0x1p-66, x.lo * 0x1p-66};
    const posenc_dd z = posenc_dd_mul(x, x);
    posenc_dd s = posenc_dd_mul(x, series(z, SINE, SINE_REST)), c = series(z, COSINE, COSINE_REST);
    if (quarter >> 62 & 1) {
        posenc_dd swap = s;
        s = c;
        c = swap;
    }
    *sine = quarter >> 63 ? posenc_dd_negate(s) : s;
    *cosine = (quarter ^ quarter << 1) >> 63 ? posenc_dd_negate(c) : c;
}
