/* SPDX-License-Identifier: MIT */
/* SLEEF's sine and cosine in the widest form of the ISA that this file is compiled for. */
#include "sleef.h"

#include <sleef.h>

namespace bench {

#if defined(__AVX512F__)

void sleef_rows_avx512(const double *positions, size_t tokens, const double *frequencies,
                       size_t pairs, float *rows) {
    for (size_t t = 0; t < tokens; t++, rows += 2 * pairs)
        for (size_t i = 0; i < pairs; i += 8) {
            const __m512d angle =
                _mm512_mul_pd(_mm512_set1_pd(positions[t]), _mm512_loadu_pd(frequencies + i));
            const Sleef___m512d_2 sine_cosine = Sleef_finz_sincosd8_u10avx512f(angle);
            _mm256_storeu_ps(rows + i, _mm512_cvtpd_ps(sine_cosine.y));
            _mm256_storeu_ps(rows + pairs + i, _mm512_cvtpd_ps(sine_cosine.x));
        }
}

#elif defined(__AVX2__)

void sleef_rows_avx2(const double *positions, size_t tokens, const double *frequencies,
                     size_t pairs, float *rows) {
    for (size_t t = 0; t < tokens; t++, rows += 2 * pairs)
        for (size_t i = 0; i < pairs; i += 4) {
            const __m256d angle =
                _mm256_mul_pd(_mm256_set1_pd(positions[t]), _mm256_loadu_pd(frequencies + i));
            const Sleef___m256d_2 sine_cosine = Sleef_finz_sincosd4_u10avx2(angle);
            _mm_storeu_ps(rows + i, _mm256_cvtpd_ps(sine_cosine.y));
            _mm_storeu_ps(rows + pairs + i, _mm256_cvtpd_ps(sine_cosine.x));
        }
}

#else

void sleef_rows_scalar(const double *positions, size_t tokens, const double *frequencies,
                       size_t pairs, float *rows) {
    for (size_t t = 0; t < tokens; t++, rows += 2 * pairs)
        for (size_t i = 0; i < pairs; i++) {
            const Sleef_double_2 sine_cosine =
                Sleef_cinz_sincosd1_u10purec(positions[t] * frequencies[i]);
            rows[i] = static_cast<float>(sine_cosine.y);
            rows[pairs + i] = static_cast<float>(sine_cosine.x);
        }
}

#if defined(__aarch64__)

void sleef_rows_neon(const double *positions, size_t tokens, const double *frequencies,
                     size_t pairs, float *rows) {
    for (size_t t = 0; t < tokens; t++, rows += 2 * pairs)
        for (size_t i = 0; i < pairs; i += 2) {
            const float64x2_t angle = vmulq_n_f64(vld1q_f64(frequencies + i), positions[t]);
            const Sleef_float64x2_t_2 sine_cosine = Sleef_finz_sincosd2_u10advsimd(angle);
            vst1_f32(rows + i, vcvt_f32_f64(sine_cosine.y));
            vst1_f32(rows + pairs + i, vcvt_f32_f64(sine_cosine.x));
        }
}

#endif
#endif

} // namespace bench
