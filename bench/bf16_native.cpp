/* SPDX-License-Identifier: MIT */
/* f32 -> bf16 by vcvtneps2bf16, which treats subnormals as zero. */
#include "bf16_native.h"

#include <immintrin.h>

namespace bench {

void bf16_native(const void *source, void *destination, size_t count) {
    const float *from = static_cast<const float *>(source);
    uint16_t *to = static_cast<uint16_t *>(destination);
    for (size_t i = 0; i < count; i += 16) {
        const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(from + i));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + i), (__m256i)rounded);
    }
}

} // namespace bench
