/* SPDX-License-Identifier: MIT */
/* The peer of rounding to bf16: the instruction that flushes subnormals. */
#ifndef POSENC_BENCH_BF16_NATIVE_H
#define POSENC_BENCH_BF16_NATIVE_H

#include <cstddef>
#include <cstdint>

namespace bench {

/* Converts count (a multiple of 16) values; needs a CPU with AVX512_BF16. */
void bf16_native(const void *source, void *destination, size_t count);

} // namespace bench

#endif
