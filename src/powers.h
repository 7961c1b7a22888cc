/* SPDX-License-Identifier: MIT */
/* Order of an integer and a power with a fractional exponent, decided in integers. */
#ifndef POSENC_POWERS_H
#define POSENC_POWERS_H

#include "common.h"

/*
 * The sign of c - first (last/first)^(k/steps), for 0 < first < last <= 2^53, 0 < c <= 2^53,
 * 0 < steps <= 2^16, 0 <= k < 2^31. Equality is decided exactly. Numbers that are not equal are
 * told apart while they differ by more than 2^-440 of their size.
 */
int posenc_power_order(int64_t c, int64_t first, int64_t last, int64_t steps, int64_t k);

#endif
