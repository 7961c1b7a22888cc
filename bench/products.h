/* SPDX-License-Identifier: MIT */
/* What a core can multiply and read at most: the limits of attention. */
#ifndef POSENC_BENCH_PRODUCTS_H
#define POSENC_BENCH_PRODUCTS_H

#include <cstddef>

namespace bench {

struct products {
    size_t lanes;
    /* `rounds` fused multiplications of 24 vectors with registers alone: the peak. */
    float (*peak)(size_t rounds);
    /* The same 24 sums as 6 rows by 4 vectors, with rows [6][128] and vectors [128][4] in L1. */
    float (*fed)(const float *rows, const float *vectors, size_t rounds);
    /* Reads each byte once; count is a multiple of 256, memory is 64-byte aligned. */
    float (*read)(const float *data, size_t count);
};

constexpr size_t sums = 24, depth = 128; /* of one round of `fed` */

extern const products products_baseline;
#if defined(__x86_64__)
extern const products products_avx2;
extern const products products_avx512;
#endif

/* The widest that this machine can run. */
const products &widest_products();

} // namespace bench

#endif
