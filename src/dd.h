/* SPDX-License-Identifier: MIT */
/* Double-double arithmetic, relative error near 2^-104, from + - x / alone: one result anywhere. */
#ifndef POSENC_DD_H
#define POSENC_DD_H

#include "common.h"

/*
 * The value hi + lo, where hi is the double nearest to it. Error-free transformations after Dekker,
 * "A floating-point technique for extending the available precision" (1971). Neither fma nor libm
 * is used: not every machine has the first, and the second differs. Contraction must be off.
 * Magnitudes beyond 2^995 overflow in split: callers scale by powers of two first.
 */
typedef struct posenc_dd {
    double hi;
    double lo;
} posenc_dd;

static const posenc_dd posenc_dd_pi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
static const posenc_dd posenc_dd_two_pi = {0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};
static const posenc_dd posenc_dd_ln_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

static inline posenc_dd posenc_dd_from(double x)
{
    return (posenc_dd){x, 0.0};
}

/* a + b exactly, given |a| >= |b|. */
static inline posenc_dd posenc_dd_fast_sum(double a, double b)
{
    double sum = a + b;
    return (posenc_dd){sum, b - (sum - a)};
}

/* a + b exactly. */
static inline posenc_dd posenc_dd_sum(double a, double b)
{
    double sum = a + b;
    double b_part = sum - a;
    double a_part = sum - b_part;
    return (posenc_dd){sum, (a - a_part) + (b - b_part)};
}

/* The upper 26 bits of x, so that products of halves are exact. */
static inline double posenc_dd_upper(double x)
{
    double t = 0x1p27 * x + x;
    return t - (t - x);
}

/* a b exactly, absent underflow of the low part. */
static inline posenc_dd posenc_dd_product(double a, double b)
{
    double product = a * b;
    double a_hi = posenc_dd_upper(a), a_lo = a - a_hi;
    double b_hi = posenc_dd_upper(b), b_lo = b - b_hi;
    double error = ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo;
    return (posenc_dd){product, error};
}

static inline posenc_dd posenc_dd_negate(posenc_dd a)
{
    return (posenc_dd){-a.hi, -a.lo};
}

/* Both parts are summed exactly, so that cancellation costs no relative accuracy of the inputs. */
static inline posenc_dd posenc_dd_add(posenc_dd a, posenc_dd b)
{
    posenc_dd high = posenc_dd_sum(a.hi, b.hi);
    posenc_dd low = posenc_dd_sum(a.lo, b.lo);
    high = posenc_dd_fast_sum(high.hi, high.lo + low.hi);
    return posenc_dd_fast_sum(high.hi, high.lo + low.lo);
}

static inline posenc_dd posenc_dd_sub(posenc_dd a, posenc_dd b)
{
    return posenc_dd_add(a, posenc_dd_negate(b));
}

static inline posenc_dd posenc_dd_mul(posenc_dd a, posenc_dd b)
{
    posenc_dd p = posenc_dd_product(a.hi, b.hi);
    return posenc_dd_fast_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

/* Long division with three digits of 53 bits. */
static inline posenc_dd posenc_dd_div(posenc_dd a, posenc_dd b)
{
    double q1 = a.hi / b.hi;
    posenc_dd rest = posenc_dd_sub(a, posenc_dd_mul(b, posenc_dd_from(q1)));
    double q2 = rest.hi / b.hi;
    rest = posenc_dd_sub(rest, posenc_dd_mul(b, posenc_dd_from(q2)));
    double q3 = rest.hi / b.hi;
    posenc_dd q = posenc_dd_fast_sum(q1, q2);
    return posenc_dd_add(q, posenc_dd_from(q3));
}

/* a < b, a <= b. */
static inline int posenc_dd_less(posenc_dd a, posenc_dd b)
{
    return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}

static inline int posenc_dd_less_equal(posenc_dd a, posenc_dd b)
{
    return !posenc_dd_less(b, a);
}

/* 2^exponent for -1022 <= exponent <= 1023. */
static inline double posenc_dd_power_of_two(int32_t exponent)
{
    return posenc_double((uint64_t)(exponent + 1023) << 52);
}

/* Splits a finite x > 0 into m in [1, 2) and a power of two; subnormals included. */
static inline double posenc_dd_mantissa(double x, int32_t *exponent)
{
    int32_t extra = x < 0x1p-1022 ? 54 : 0;
    uint64_t bits = posenc_bits64(extra ? x * 0x1p54 : x);
    *exponent = (int32_t)(bits >> 52) - 1023 - extra;
    return posenc_double((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
}

/* a^n for n >= 0 by repeated squaring. The relative error grows like n 2^-104. */
posenc_dd posenc_dd_power(posenc_dd a, int32_t n);

/* base^(-1/n) for 2^-64 <= base < 2^128 and n >= 1. */
posenc_dd posenc_dd_inverse_root(posenc_dd base, int32_t n);

/* Square root of a > 0, from a division and the correctly rounded root of a double. */
posenc_dd posenc_dd_sqrt(posenc_dd a);

/* Natural logarithm of a finite x > 0. */
posenc_dd posenc_dd_log(double x);

/* e^x for |x| <= 600. */
posenc_dd posenc_dd_exp(posenc_dd x);

/* The largest integer <= x; x.hi itself from 2^52 on. */
double posenc_dd_floor(posenc_dd x);

/* The double nearest to x 2^exponent, rounded once even where that is subnormal. x > 0. */
double posenc_dd_round_scaled(posenc_dd x, int32_t exponent);

/* The float nearest to x, rounded once. x > 0, in the range of normal floats. */
float posenc_dd_round_float(posenc_dd x);

/* Functions of float32 correctly rounded, where a libm's own last bit would be anyone's guess. */

/* ln x for a finite x > 0. */
float posenc_log_f32(float x);

/* x^y for a finite x > 0 with ln x = log. */
float posenc_power_f32(float x, posenc_dd log, double y);

#endif
