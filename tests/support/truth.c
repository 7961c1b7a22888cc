/* SPDX-License-Identifier: MIT */
/* Cosine and sine of an exact product, by schoolbook multiplication with 1/(2 pi). */
#include "truth.h"

#include <math.h>

/* 1/(2 pi) = 0.159154943091895335768883763372514362034459645740... in base 2^32, 256 bits. */
static const uint32_t one_over_two_pi[8] = {0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u,
                                            0x36d8a566u, 0x4f10e410u, 0x7f9458eau, 0xf7aef158u};

enum { LIMBS = 12 };

/* Little-endian limbs of a * b * floor(2^256 / 2 pi) for a, b < 2^53. */
static void product(uint64_t a, uint64_t b, uint32_t limbs[LIMBS])
{
    const uint64_t half[2] = {b & 0xffffffffu, b >> 32};
    uint32_t number[4] = {0, 0, 0, 0};
    uint64_t carry;

    for (int i = 0; i < 2; i++) {
        carry = (a & 0xffffffffu) * half[i] + number[i];
        number[i] = (uint32_t)carry;
        carry = (carry >> 32) + (a >> 32) * half[i] + number[i + 1];
        number[i + 1] = (uint32_t)carry;
        number[i + 2] = (uint32_t)(carry >> 32);
    }
    for (int i = 0; i < LIMBS; i++) limbs[i] = 0;
    for (int i = 0; i < 4; i++) {
        carry = 0;
        for (int j = 0; j < 8; j++) {
            carry += (uint64_t)number[i] * one_over_two_pi[7 - j] + limbs[i + j];
            limbs[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        limbs[i + 8] = (uint32_t)carry;
    }
}

/* 32 bits of the number from bit `at` on; bits outside are 0. */
static uint32_t bits_at(const uint32_t limbs[LIMBS], int at)
{
    uint32_t result = 0;

    for (int i = 0; i < 32; i++) {
        int bit = at + i;

        if (bit >= 0 && bit < 32 * LIMBS) result |= (limbs[bit / 32] >> (bit % 32) & 1u) << i;
    }
    return result;
}

static uint64_t mantissa(double x, int *exponent)
{
    uint64_t m = (uint64_t)ldexp(frexp(fabs(x), exponent), 53);

    *exponent -= 53;
    return m;
}

void test_cos_sin_real(double position, double frequency, long double *cosine, long double *sine)
{
    const long double two_pi = 6.283185307179586476925286766559005768L;
    long double plain = (long double)fabs(position) * (long double)fabs(frequency);
    long double turns, c, s;
    uint32_t limbs[LIMBS];
    unsigned quarter = 0;
    int negative = (position < 0) != (signbit(frequency) != 0);

    if (plain < 0.5L) {
        c = cosl(plain);
        s = sinl(plain);
    } else {
        int p_exponent, f_exponent, point; /* point: the bit of the product worth one turn */
        uint64_t p = mantissa(position, &p_exponent), f = mantissa(frequency, &f_exponent);
        uint32_t w0, w1, w2;

        point = 256 - p_exponent - f_exponent;
        product(p, f, limbs);
        w0 = bits_at(limbs, point - 32);
        w1 = bits_at(limbs, point - 64);
        w2 = bits_at(limbs, point - 96);
        quarter = (unsigned)(((uint64_t)w0 + 0x20000000u) >> 30) & 3u;
        w0 += 0x20000000u;
        w0 = (w0 & 0x3fffffffu);
        turns = ((long double)w0 - 0x1p29L) * 0x1p-32L + (long double)w1 * 0x1p-64L
                + (long double)w2 * 0x1p-96L;
        c = cosl(turns * two_pi);
        s = sinl(turns * two_pi);
    }
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    if (negative) *sine = -*sine;
}

void test_cos_sin(int64_t position, double frequency, long double *cosine, long double *sine)
{
    test_cos_sin_real((double)position, frequency, cosine, sine);
}

long double test_frequency(double base, int32_t i, int32_t r)
{
    return powl((long double)base, -2.0L * (long double)i / (long double)r);
}

long double test_row_bound(double factor)
{
    long double bound = 0.501L * 0x1p-24L;

    for (double a = 1; a < factor; a *= 2) bound *= 2;
    return bound;
}
