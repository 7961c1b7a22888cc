/* SPDX-License-Identifier: MIT */
/* The truth that the library is held against: long double, with angles reduced in integers. */
#ifndef TEST_TRUTH_H
#define TEST_TRUTH_H

#include <stdint.h>

/*
 * cos and sin of position * frequency for |position| <= 2^31 and |frequency| < 2^60. The product of
 * the two stored numbers is exact; so is its fraction of a turn but for an error below 2^-90.
 */
void test_cos_sin(int64_t position, double frequency, long double *cosine, long double *sine);

/* The same for a real position, |position| < 2^31 and |position * frequency| < 2^107. */
void test_cos_sin_real(double position, double frequency, long double *cosine, long double *sine);

/* base^(-2i/r) as in Su et al. 2021, RoFormer, section 3.2.2 (with base 10000 there). */
long double test_frequency(double base, int32_t i, int32_t r);

/* The bound of a row's values for attention factor A: 0.501 x 2^-24 x 2^ceil(log2 max(1, A)). */
long double test_row_bound(double factor);

#endif
