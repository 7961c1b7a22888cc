/* SPDX-License-Identifier: MIT */
/* The floating-point control registers: rounding, masks, flush and denormal bits. */
#ifndef TEST_CONTROL_WORD_H
#define TEST_CONTROL_WORD_H

#include <fenv.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* Everything but the sticky exception flags, which arithmetic sets by right. */
static inline uint64_t test_control_word(void)
{
#if defined(__SSE2__)
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (uint64_t)(_mm_getcsr() & ~0x3fu) << 16 | x87;
#elif defined(__aarch64__)
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
#else
    return (uint64_t)fegetround();
#endif
}

#endif
