/* SPDX-License-Identifier: MIT */
/* Powers, roots, logarithm, exponential and single roundings of double-doubles. */
#include "dd.h"

#include <math.h>

posenc_dd posenc_dd_power(posenc_dd a, int32_t n)
{
    posenc_dd result = posenc_dd_from(1.0);
    for (;;) {
        if (n & 1) {
            result = posenc_dd_mul(result, a);
        }
        n >>= 1;
        if (n == 0) {
            return result;
        }
        a = posenc_dd_mul(a, a);
    }
}

static double power(double a, int32_t n)
{
    double result = 1.0;
    for (; n > 0; n >>= 1, a *= a) {
        if (n & 1) {
            result *= a;
        }
    }
    return result;
}

/*
 * A number just below base^(-1/n). The mantissa m gives log2(m) <= m - 1 + 0.0861, and the tangent
 * at 0 gives 2^-f >= 1 - f ln 2; both are rounded to the safe side.
 */
static double below_inverse_root(double base, int32_t n)
{
    int32_t exponent;
    double mantissa = posenc_dd_mantissa(base, &exponent);
    double turns = ((double)exponent + (mantissa - 1.0) + 0.0861) / (double)n;
    int32_t whole = (int32_t)turns;
    return (1.0 - 0.6931472 * (turns - (double)whole)) * posenc_dd_power_of_two(-whole);
}

/*
 * Newton's step y += y (1 - base y^n) / n for y^-n = base needs no division by y. It maps all of
 * (0, root) into itself, so that a start below the root climbs to it: by a factor of 1 + 1/n while
 * base y^n is small, then quadratically. For base < 2^76 the start is at most 37 factors away, for
 * base < 2^128 63. The last two steps double the 53 bits with a residual in double-double.
 */
posenc_dd posenc_dd_inverse_root(posenc_dd base, int32_t n)
{
    double start = below_inverse_root(base.hi, n), before = 0.0;
    int32_t steps = base.hi < 0x1p76 ? 64 : 96;
    for (int32_t i = 0; i < steps; i++) {
        double next = start + start * (1.0 - base.hi * power(start, n)) / (double)n;
        /* It stays; or it goes to and fro between two values, and an even rest of the steps ends
         * where it is now. */
        if (next == start || (next == before && (steps - i) % 2 == 0))
            break;
        before = start;
        start = next;
    }
    posenc_dd y = posenc_dd_from(start);
    for (int32_t i = 0; i < 2; i++) {
        posenc_dd filled = posenc_dd_mul(posenc_dd_power(y, n), base);
        posenc_dd residual = posenc_dd_sub(posenc_dd_from(1.0), filled);
        posenc_dd step = posenc_dd_div(posenc_dd_mul(y, residual), posenc_dd_from((double)n));
        y = posenc_dd_add(y, step);
    }
    return y;
}

/* Newton's step for a / y = y from the nearest double doubles its 53 bits. */
posenc_dd posenc_dd_sqrt(posenc_dd a)
{
    posenc_dd y = posenc_dd_from(sqrt(a.hi));
    posenc_dd rest = posenc_dd_sub(a, posenc_dd_mul(y, y));
    return posenc_dd_add(y, posenc_dd_div(rest, posenc_dd_add(y, y)));
}

/*
 * ln(m 2^k) = k ln 2 + 2 atanh(z), z = (m - 1) / (m + 1), with m in [0.71, 1.42): z^2 < 0.0303, so
 * the series z + z^3/3 + ... is cut below 2^-110 of its sum after z^45.
 */
posenc_dd posenc_dd_log(double x)
{
    int32_t exponent;
    double m = posenc_dd_mantissa(x, &exponent);
    if (m > 1.42) {
        m *= 0.5;
        exponent++;
    }
    posenc_dd one = posenc_dd_from(1.0);
    posenc_dd z = posenc_dd_div(posenc_dd_from(m - 1.0), posenc_dd_sum(m, 1.0));
    posenc_dd square = posenc_dd_mul(z, z), sum = posenc_dd_from(0.0);
    for (int32_t k = 45; k >= 1; k -= 2) {
        posenc_dd term = posenc_dd_div(one, posenc_dd_from((double)k));
        sum = posenc_dd_add(posenc_dd_mul(sum, square), term);
    }
    posenc_dd atanh_twice = posenc_dd_mul(posenc_dd_add(z, z), sum);
    posenc_dd log = posenc_dd_mul(posenc_dd_ln_2, posenc_dd_from((double)exponent));
    return posenc_dd_add(log, atanh_twice);
}

/*
 * e^x = 2^k (e^(r/64))^64 with |r| <= 0.35: the Taylor series of r/64 is cut below 2^-110 after the
 * 12th power, and the six squarings cost six bits.
 */
posenc_dd posenc_dd_exp(posenc_dd x)
{
    double k = (x.hi / posenc_dd_ln_2.hi + 0x1.8p52) - 0x1.8p52;
    posenc_dd one = posenc_dd_from(1.0), sum = one;
    posenc_dd r = posenc_dd_sub(x, posenc_dd_mul(posenc_dd_ln_2, posenc_dd_from(k)));
    for (int32_t j = 12; j >= 1; j--) {
        posenc_dd part = posenc_dd_div(r, posenc_dd_from(64.0 * (double)j));
        sum = posenc_dd_add(one, posenc_dd_mul(part, sum));
    }
    for (int32_t j = 0; j < 6; j++) {
        sum = posenc_dd_mul(sum, sum);
    }
    double scale = posenc_dd_power_of_two((int32_t)k);
    return (posenc_dd){sum.hi * scale, sum.lo * scale};
}

double posenc_dd_floor(posenc_dd x)
{
    if (!(x.hi > -0x1p52 && x.hi < 0x1p52)) {
        return x.hi;
    }
    double whole = (double)(int64_t)x.hi;
    return whole > x.hi || (whole == x.hi && x.lo < 0.0) ? whole - 1.0 : whole;
}

/*
 * The multiple of `quantum`, a power of two, nearest to 0 < x <= 2^52 quantum. Where hi is a tie,
 * lo decides; rounding hi alone would round twice.
 */
static double round_to(posenc_dd x, double quantum)
{
    double shift = 0x1p52 * quantum;
    double rounded = (x.hi + shift) - shift;
    double rest = x.hi - rounded;
    if (rest == 0.5 * quantum && x.lo > 0.0) {
        rounded += quantum;
    } else if (rest == -0.5 * quantum && x.lo < 0.0) {
        rounded -= quantum;
    }
    return rounded;
}

/* x 2^exponent in two steps: one factor could leave the range of doubles. */
static double scale(double x, int32_t exponent)
{
    int32_t half = exponent / 2;
    return x * posenc_dd_power_of_two(half) * posenc_dd_power_of_two(exponent - half);
}

double posenc_dd_round_scaled(posenc_dd x, int32_t exponent)
{
    int32_t own;
    posenc_dd_mantissa(x.hi, &own);
    if (own + exponent < -1080) {
        return 0.0;
    }
    if (own + exponent < -1022) {
        x.hi = round_to(x, scale(1.0, -1074 - exponent));
    }
    return scale(x.hi, exponent < 2000 ? exponent : 2000);
}

float posenc_dd_round_float(posenc_dd x)
{
    int32_t exponent;
    posenc_dd_mantissa(x.hi, &exponent);
    return (float)round_to(x, posenc_dd_power_of_two(exponent - 23));
}

float posenc_log_f32(float x)
{
    posenc_dd log = posenc_dd_log((double)x);
    if (log.hi < 0.0) {
        return -posenc_dd_round_float(posenc_dd_negate(log));
    }
    return log.hi > 0.0 ? posenc_dd_round_float(log) : 0.0f;
}

/* A square may be a tie, which only an exact product decides. */
float posenc_power_f32(float x, posenc_dd log, double y)
{
    if (y == 2.0) {
        return x * x;
    }
    return posenc_dd_round_float(posenc_dd_exp(posenc_dd_mul(log, posenc_dd_from(y))));
}
