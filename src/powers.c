/* SPDX-License-Identifier: MIT */
/* Order of an integer and a power with a fractional exponent, decided in integers. */
#include "powers.h"

enum { WORDS = 16 };

/* The number 0.m 2^exponent, least significant word first, the top bit of m set. */
struct wide {
    uint32_t m[WORDS];
    int64_t exponent;
};

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* p^n, or INT64_MAX where that does not fit. p > 0. */
static int64_t whole_power(int64_t p, int64_t n)
{
    int64_t result = 1;
    for (; p > 1 && n > 0; n--)
        if (__builtin_mul_overflow(result, p, &result))
            return INT64_MAX;
    return result;
}

/* The root p of a = p^n, or 0 if a is no such power. a <= 2^53. */
static int64_t whole_root(int64_t a, int64_t n)
{
    int64_t low = 1, high = n == 1 ? a : INT64_C(1) << (53 / n + 1);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (whole_power(middle, n) < a)
            low = middle + 1;
        else
            high = middle;
    }
    return whole_power(low, n) == a ? low : 0;
}

/*
 * 1 if (c/first)^steps = (last/first)^k. With the common divisor of steps and k taken out, both
 * exponents n and k are coprime, so that both fractions are powers of one: last/first = t^n and
 * c/first = t^k. Fractions in lowest terms are such powers where numerator and denominator are.
 * last > first means a numerator of at least 2, whose n-th root is no integer for n > 53.
 */
static int is_equal(int64_t c, int64_t first, int64_t last, int64_t steps, int64_t k)
{
    int64_t common = greatest_divisor(steps, k), n = steps / common;
    k /= common;
    if (n > 53)
        return 0;
    int64_t divisor = greatest_divisor(last, first);
    int64_t above = whole_root(last / divisor, n), below = whole_root(first / divisor, n);
    if (!above || !below)
        return 0;
    divisor = greatest_divisor(c, first);
    return whole_power(above, k) == c / divisor && whole_power(below, k) == first / divisor;
}

static struct wide wide_from(int64_t x)
{
    struct wide w = {{0}, 64};
    uint64_t bits = (uint64_t)x;
    for (; !(bits >> 63); bits <<= 1)
        w.exponent--;
    w.m[WORDS - 1] = (uint32_t)(bits >> 32);
    w.m[WORDS - 2] = (uint32_t)bits;
    return w;
}

/* Rounds down: less than 2^-510 of the product is lost. */
static struct wide wide_mul(const struct wide *a, const struct wide *b)
{
    uint32_t product[2 * WORDS] = {0};
    struct wide w = {{0}, a->exponent + b->exponent};
    for (int i = 0; i < WORDS; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < WORDS; j++) {
            carry += (uint64_t)a->m[i] * b->m[j] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product[i + WORDS] = (uint32_t)carry;
    }
    int shift = product[2 * WORDS - 1] >> 31 ? 0 : 1;
    for (int i = 0; i < WORDS; i++)
        w.m[i] = product[WORDS + i] << shift | (shift ? product[WORDS + i - 1] >> 31 : 0);
    w.exponent -= shift;
    return w;
}

/* a^n b^m. Fewer than 2^33 products are one after another in effect: 2^-477 is lost at most. */
static struct wide wide_powers(int64_t a, int64_t n, int64_t b, int64_t m)
{
    struct wide result = wide_from(1), x = wide_from(a), y = wide_from(b);
    for (; n > 0; n >>= 1) {
        if (n & 1)
            result = wide_mul(&result, &x);
        x = wide_mul(&x, &x);
    }
    for (; m > 0; m >>= 1) {
        if (m & 1)
            result = wide_mul(&result, &y);
        y = wide_mul(&y, &y);
    }
    return result;
}

int posenc_power_order(int64_t c, int64_t first, int64_t last, int64_t steps, int64_t k)
{
    if (is_equal(c, first, last, steps, k))
        return 0;
    struct wide a = wide_powers(c, steps, first, k), b = wide_powers(last, k, first, steps);
    if (a.exponent != b.exponent)
        return a.exponent < b.exponent ? -1 : 1;
    for (int i = WORDS - 1; i > 0; i--)
        if (a.m[i] != b.m[i])
            return a.m[i] < b.m[i] ? -1 : 1;
    return a.m[0] < b.m[0] ? -1 : 1;
}
