/* SPDX-License-Identifier: MIT */
/*
 * Angles counted in turns. A frequency of w radians per position is kept as W = w / 2 pi mod 1 in
 * 96 binary places; p*W mod 1 is then integer arithmetic, exact for every integer position p, and
 * so is taking off the quarter turns. Only the rest, at most 1/8 turn, meets floating point.
 *
 * Every operation is rounded by itself (no fma), so that all machines get the same doubles.
 * docs/accuracy.md derives the bounds.
 */
#ifndef POSENC_ANGLE_H
#define POSENC_ANGLE_H

#include "common.h"

/* A fraction of a turn: (high * 2^32 + low) / 2^96. */
struct posenc_turns {
    uint64_t high;
    uint32_t low;
};

/* floor(2^192 / 2 pi), lowest limb first. */
static const uint32_t posenc_over_two_pi[6] = {0x4f10e410, 0x36d8a566, 0x7d4d3770,
                                               0x7f09d5f4, 0x9391054a, 0x28be60db};

/* The mantissa and exponent of x = m 2^e >= 0. */
static inline uint64_t posenc_mantissa(double x, int *exponent)
{
    uint64_t bits = posenc_bits64(x), m = bits & 0xfffffffffffff;
    int biased = (int)(bits >> 52 & 0x7ff);
    *exponent = (biased ? biased : 1) - 1075;
    return biased ? m | UINT64_C(1) << 52 : m;
}

/* product += half * K 2^(32 at), where the limbs from at + 6 on are still 0. */
static inline void posenc_add_product(uint32_t *product, int at, uint64_t half)
{
    uint64_t carry = 0;
    for (int j = 0; j < 6; j++) {
        carry += half * posenc_over_two_pi[j] + product[at + j];
        product[at + j] = (uint32_t)carry;
        carry >>= 32;
    }
    product[at + 6] = (uint32_t)carry;
}

/* product / 2^shift mod 2^96, rounded; limb `limbs` and those above are 0, and shift > 0. */
static inline struct posenc_turns posenc_turns_at(const uint32_t *product, int limbs, int shift)
{
    if (shift > 32 * limbs)
        return (struct posenc_turns){0, 0};
    int limb = shift / 32, bit = shift % 32;
    uint32_t w[3];
    for (int i = 0; i < 3; i++) {
        uint64_t two =
            limb + i <= limbs ? (uint64_t)product[limb + i + 1] << 32 | product[limb + i] : 0;
        w[i] = (uint32_t)(two >> bit);
    }
    uint32_t round = product[(shift - 1) / 32] >> ((shift - 1) % 32) & 1;
    uint64_t low = (uint64_t)w[0] + round, middle = (uint64_t)w[1] + (low >> 32);
    uint64_t high = (uint64_t)w[2] + (middle >> 32);
    return (struct posenc_turns){high << 32 | (uint32_t)middle, (uint32_t)low};
}

/*
 * x radians in turns, for 0 <= x < 2^76: m * K * 2^(e - 192) mod 1 where x = m * 2^e and K is
 * floor(2^192 / 2 pi), rounded to 96 places. 192 bits of K leave more than 20 guard bits up there.
 */
static inline struct posenc_turns posenc_turns_of(double x)
{
    int exponent;
    uint64_t m = posenc_mantissa(x, &exponent);
    uint32_t product[10] = {0}; /* m * K in 8 limbs, two zeros above */
    posenc_add_product(product, 0, m & 0xffffffff);
    posenc_add_product(product, 1, m >> 32);
    return posenc_turns_at(product, 8, 96 - exponent); /* shift >= 72 by the bound on x */
}

/*
 * p times x radians in turns, for 0 <= p <= 2^31 and 0 <= x < 2^76, the product exact: K is short
 * by less than 2^-192, which p x < 2^107 makes less than 2^-85 of a turn.
 */
static inline struct posenc_turns posenc_turns_of_product(double p, double x)
{
    int p_exponent, x_exponent;
    uint64_t a = posenc_mantissa(p, &p_exponent), b = posenc_mantissa(x, &x_exponent);
    uint64_t a_low = a & 0xffffffff, a_high = a >> 32, b_low = b & 0xffffffff, b_high = b >> 32;
    uint64_t low = a_low * b_low, middle = a_low * b_high + (low >> 32);
    uint64_t other = a_high * b_low + (middle & 0xffffffff);
    uint64_t high = a_high * b_high + (middle >> 32) + (other >> 32);
    uint32_t product[12] = {0}; /* a * b * K in 10 limbs, two zeros above */
    posenc_add_product(product, 0, low & 0xffffffff);
    posenc_add_product(product, 1, other & 0xffffffff);
    posenc_add_product(product, 2, high & 0xffffffff);
    posenc_add_product(product, 3, high >> 32);
    return posenc_turns_at(product, 10, 96 - p_exponent - x_exponent);
}

/* p * w mod 1 turn, exact. */
static inline struct posenc_turns posenc_turns_times(struct posenc_turns w, uint32_t p)
{
    uint64_t low = (uint64_t)w.low * p;
    return (struct posenc_turns){w.high * p + (low >> 32), (uint32_t)low};
}

/*
 * Minimax polynomials on |t| <= 1/8 turn, z = t^2: sin(2 pi t) = t S(z) within 2^-58 (relative) and
 * cos(2 pi t) = 1 + z Q(z) within 2^-64.6. Highest degree first, as Horner takes them.
 */
static const double posenc_sin_poly[7] = {
    0x1.e3eed660a99e2p+1,  -0x1.e30063a5b96c5p+3, 0x1.50782fca44486p+5, -0x1.32d2cce2d548fp+6,
    0x1.466bc67758701p+6,  -0x1.4abbce625be41p+5, 0x1.921fb54442d18p+2};
static const double posenc_cos_poly[7] = {
    -0x1.b27896ad2c9dep+0, 0x1.f9cc8a4a3c719p+2,  -0x1.a6d1ece4638ecp+4, 0x1.e1f50683f4e1dp+5,
    -0x1.55d3c7e3c98bdp+6, 0x1.03c1f081b5ab2p+6,  -0x1.3bd3cc9be45dep+4};

/* The nearest quarter turn goes off in integers; the signed rest is converted in two parts. */
static inline void posenc_sincos(struct posenc_turns a, double *sine, double *cosine)
{
    uint64_t quarter = a.high + (UINT64_C(1) << 61);
    double rest = (double)(int64_t)(a.high << 2 | a.low >> 30);
    double t = ((double)(a.low & 0x3fffffff) * 0x1p-30 + rest) * 0x1p-66;
    double z = t * t, s = posenc_sin_poly[0], c = posenc_cos_poly[0];
    for (int i = 1; i < 7; i++) {
        s = s * z + posenc_sin_poly[i];
        c = c * z + posenc_cos_poly[i];
    }
    s = s * t;
    c = c * z + 1;
    uint64_t odd = quarter >> 62 & 1, s_bits = posenc_bits64(odd ? c : s);
    uint64_t c_bits = posenc_bits64(odd ? s : c);
    *sine = posenc_double(s_bits ^ (quarter & UINT64_C(1) << 63));
    *cosine = posenc_double(c_bits ^ ((quarter ^ quarter << 1) & UINT64_C(1) << 63));
}

/* Cosine and sine of a float angle >= 0 below 2^76, correctly rounded to float. */
static inline void posenc_sincos_f32(float angle, float *sine, float *cosine)
{
    double s = (double)angle, c = 1;
    /* Smaller angles leave too few of the 96 places, and their sine x - x^3/6 rounds to x. */
    if (angle >= 0x1p-13f)
        posenc_sincos(posenc_turns_of((double)angle), &s, &c);
    *sine = (float)s;
    *cosine = (float)c;
}

#endif
