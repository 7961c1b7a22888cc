/* SPDX-License-Identifier: MIT */
/* The generator of all test data: x <- 1664525 x + 1013904223 mod 2^32, upper bits. */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>

struct test_random { uint32_t state; };

static inline uint32_t test_next(struct test_random *random)
{
    random->state = random->state * 1664525u + 1013904223u;
    return random->state;
}

/* 32 bits that are all of use: the low bits of the generator alone have short periods. */
static inline uint32_t test_bits(struct test_random *random)
{
    uint32_t high = test_next(random) >> 16;

    return high << 16 | test_next(random) >> 16;
}

/* An exact binary32 in [-1, 1), one step of the generator: the inputs of the golden data. */
static inline float test_unit(struct test_random *random)
{
    return (float)(test_next(random) >> 8) * 0x1p-23f - 1.0f;
}

/* An integer in [0, n). */
static inline uint32_t test_below(struct test_random *random, uint32_t n)
{
    return (uint32_t)(((uint64_t)test_bits(random) * n) >> 32);
}

#endif
