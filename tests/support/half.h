/* SPDX-License-Identifier: MIT */
/* float16 and bfloat16 by value, from their definition: shares nothing with the library's code. */
#ifndef TEST_HALF_H
#define TEST_HALF_H

#include <stddef.h>
#include <stdint.h>

/* Exact. Infinity and NaN are kept. */
double test_widen(uint16_t bits, int32_t dtype);

/* To nearest, ties to even; subnormals kept, overflow to infinity, any NaN to a quiet one. */
uint16_t test_narrow(double value, int32_t dtype);

/* Bytes of an element: 4 for F32, 2 for F16 and BF16, 1 for I8. */
size_t test_size(int32_t dtype);

/* Element `i` of an array of F32, F16 or BF16; storing rounds as test_narrow does. */
double test_load(const void *data, int32_t dtype, int64_t i);
void test_store(void *data, int32_t dtype, int64_t i, double value);

/* Half the distance of the two neighbours of `value` in the type: what one rounding may cost. */
double test_half_ulp(double value, int32_t dtype);

/* 1 if the elements have equal bits or are both NaN. */
int test_same_element(const void *a, const void *b, int32_t dtype, int64_t i);

#endif
