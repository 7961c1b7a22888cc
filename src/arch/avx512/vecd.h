/* SPDX-License-Identifier: MIT */
/* The double and integer vector layer of AVX-512 for rows: 8 lanes, no fma. */
#ifndef POSENC_AVX512_VECD_H
#define POSENC_AVX512_VECD_H

#if !defined(__AVX512F__) || !defined(__AVX512DQ__)
#error "compile with -mavx512f -mavx512dq"
#endif

#include <immintrin.h>
#include <stdint.h>

enum { F64_LANES = 8 };
typedef __m512d f64s;
typedef __m512i u64s;

static inline f64s set1_f64(double x) { return _mm512_set1_pd(x); }
static inline f64s load_f64(const double *p) { return _mm512_loadu_pd(p); }
static inline void store_f64(double *p, f64s a) { _mm512_storeu_pd(p, a); }
static inline f64s add_f64(f64s a, f64s b) { return _mm512_add_pd(a, b); }
static inline f64s sub_f64(f64s a, f64s b) { return _mm512_sub_pd(a, b); }
static inline f64s mul_f64(f64s a, f64s b) { return _mm512_mul_pd(a, b); }
static inline u64s set1_u64(uint64_t x) { return _mm512_set1_epi64((long long)x); }
static inline u64s add_u64(u64s a, u64s b) { return _mm512_add_epi64(a, b); }
static inline u64s and_u64(u64s a, u64s b) { return _mm512_and_si512(a, b); }
static inline u64s or_u64(u64s a, u64s b) { return _mm512_or_si512(a, b); }
static inline u64s xor_u64(u64s a, u64s b) { return _mm512_xor_si512(a, b); }
static inline u64s shift_left(u64s a, unsigned n) { return _mm512_slli_epi64(a, n); }
static inline u64s shift_right(u64s a, unsigned n) { return _mm512_srli_epi64(a, n); }
/* Products of the lower halves, 64 bits wide. */
static inline u64s mul_u32(u64s a, u64s b) { return _mm512_mul_epu32(a, b); }

static inline u64s widen_u32(const uint32_t *p)
{
    return _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)p));
}

static inline f64s from_u32(u64s a) { return _mm512_cvtepu64_pd(a); } /* below 2^32: exact */
static inline f64s from_i64(u64s a) { return _mm512_cvtepi64_pd(a); }

static inline f64s xor_f64(f64s a, u64s bits)
{
    return _mm512_xor_pd(a, _mm512_castsi512_pd(bits));
}

/* a where the top bit of `mask` is set, else b. */
static inline f64s select_by_top(u64s mask, f64s a, f64s b)
{
    return _mm512_mask_blend_pd(_mm512_movepi64_mask(mask), b, a);
}

/* The floats of two vectors in one store, from which one load can be served at once. */
static inline void store_two_as_f32(float *p, f64s a, f64s b)
{
    __m512 lower = _mm512_castps256_ps512(_mm512_cvtpd_ps(a));
    _mm512_storeu_ps(p, _mm512_insertf32x8(lower, _mm512_cvtpd_ps(b), 1));
}

static inline void store_as_f32(float *p, f64s a) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(a)); }

#endif
