/* SPDX-License-Identifier: MIT */
/* The double and integer vector layer of AVX2 for rows: 4 lanes, no fma. */
#ifndef POSENC_AVX2_VECD_H
#define POSENC_AVX2_VECD_H

#ifndef __AVX2__
#error "compile with -mavx2"
#endif

#include <immintrin.h>
#include <stdint.h>

enum { F64_LANES = 4 };
typedef __m256d f64s;
typedef __m256i u64s;

static inline f64s set1_f64(double x) { return _mm256_set1_pd(x); }
static inline f64s load_f64(const double *p) { return _mm256_loadu_pd(p); }
static inline void store_f64(double *p, f64s a) { _mm256_storeu_pd(p, a); }
static inline f64s add_f64(f64s a, f64s b) { return _mm256_add_pd(a, b); }
static inline f64s sub_f64(f64s a, f64s b) { return _mm256_sub_pd(a, b); }
static inline f64s mul_f64(f64s a, f64s b) { return _mm256_mul_pd(a, b); }
static inline u64s set1_u64(uint64_t x) { return _mm256_set1_epi64x((long long)x); }
static inline u64s add_u64(u64s a, u64s b) { return _mm256_add_epi64(a, b); }
static inline u64s and_u64(u64s a, u64s b) { return _mm256_and_si256(a, b); }
static inline u64s or_u64(u64s a, u64s b) { return _mm256_or_si256(a, b); }
static inline u64s xor_u64(u64s a, u64s b) { return _mm256_xor_si256(a, b); }
static inline u64s shift_left(u64s a, int n) { return _mm256_slli_epi64(a, n); }
static inline u64s shift_right(u64s a, int n) { return _mm256_srli_epi64(a, n); }
/* Products of the lower halves, 64 bits wide. */
static inline u64s mul_u32(u64s a, u64s b) { return _mm256_mul_epu32(a, b); }

static inline u64s widen_u32(const uint32_t *p)
{
    return _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)p));
}

/* Below 2^32, exact: the number under the exponent of 2^52, minus 2^52. */
static inline f64s from_u32(u64s a)
{
    const u64s magic = set1_u64(0x4330000000000000);
    return sub_f64(_mm256_castsi256_pd(or_u64(a, magic)), _mm256_castsi256_pd(magic));
}

/* Rounded once: the upper half (sign turned) under the exponent of 2^84 and the lower half under
 * that of 2^52; taking both offsets off the upper one is exact, the last addition rounds. */
static inline f64s from_i64(u64s a)
{
    u64s upper = xor_u64(shift_right(a, 32), set1_u64(0x4530000080000000));
    u64s lower = _mm256_blend_epi32(a, set1_u64(0x4330000000000000), 0xaa);
    f64s offset = _mm256_castsi256_pd(set1_u64(0x4530000080100000));
    return add_f64(sub_f64(_mm256_castsi256_pd(upper), offset), _mm256_castsi256_pd(lower));
}

static inline f64s xor_f64(f64s a, u64s bits)
{
    return _mm256_xor_pd(a, _mm256_castsi256_pd(bits));
}

/* a where the top bit of `mask` is set, else b. */
static inline f64s select_by_top(u64s mask, f64s a, f64s b)
{
    return _mm256_blendv_pd(b, a, _mm256_castsi256_pd(mask));
}

/* The floats of two vectors in one store, from which one load can be served at once. */
static inline void store_two_as_f32(float *p, f64s a, f64s b)
{
    _mm256_storeu_ps(p, _mm256_set_m128(_mm256_cvtpd_ps(b), _mm256_cvtpd_ps(a)));
}

static inline void store_as_f32(float *p, f64s a) { _mm_storeu_ps(p, _mm256_cvtpd_ps(a)); }

#endif
