/* SPDX-License-Identifier: MIT */
/* The oracle of the self-check: the formulas in long double, sharing no code with the library. */
#ifndef POSENC_TRUTH_H
#define POSENC_TRUTH_H

#include <stdint.h>

/* Cosine and sine of position x inv_freq, for |position| <= 2^31. */
void truth_angle(int64_t position, double inv_freq, long double *cosine, long double *sine);

/* The largest error that promise 1 allows a row value with this attention factor. */
double truth_row_bound(double attention_factor);

/* The same for a rotated value of the pair (a, b) stored as `dtype`; `value` is the true result. */
long double truth_rotation_bound(double attention_factor, float a, float b, int32_t dtype,
                                 long double value);

#endif
