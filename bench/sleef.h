/* SPDX-License-Identifier: MIT */
/* The peer of row making: SLEEF's double sine and cosine, rounded to the same f32 rows. */
#ifndef POSENC_BENCH_SLEEF_H
#define POSENC_BENCH_SLEEF_H

#include <cstddef>
#include <cstdint>

namespace bench {

/* rows[t] = [cos | sin] of positions[t] * frequencies[i] in double; pairs is a multiple of 8. */
using sleef_rows = void(const double *positions, size_t tokens, const double *frequencies,
                        size_t pairs, float *rows);

sleef_rows sleef_rows_scalar;
sleef_rows sleef_rows_neon;
sleef_rows sleef_rows_avx2;
sleef_rows sleef_rows_avx512;

} // namespace bench

#endif
