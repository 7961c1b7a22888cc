/* SPDX-License-Identifier: MIT */
/* The float vector layer of AVX2: 8 and 4 lanes. AVX-512 includes it for its tails. */
#ifndef POSENC_AVX2_VEC_H
#define POSENC_AVX2_VEC_H

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "compile with -mavx2 -mfma -mf16c"
#endif

#include <immintrin.h>
#include <stdint.h>

#define POSENC_LANES 8
#define POSENC_REGISTERS 16

typedef __m256 f32x8;
typedef __m128 f32x4;

static inline void prefetch_write(const void *p)
{
    __builtin_prefetch(p, 1, 3);
}

static inline f32x8 set1_8(float x) { return _mm256_set1_ps(x); }
static inline f32x8 add_8(f32x8 a, f32x8 b) { return _mm256_add_ps(a, b); }
static inline f32x8 sub_8(f32x8 a, f32x8 b) { return _mm256_sub_ps(a, b); }
static inline f32x8 mul_8(f32x8 a, f32x8 b) { return _mm256_mul_ps(a, b); }
static inline f32x8 div_8(f32x8 a, f32x8 b) { return _mm256_div_ps(a, b); }
/* a*b + c and c - a*b, rounded once. */
static inline f32x8 fma_8(f32x8 a, f32x8 b, f32x8 c) { return _mm256_fmadd_ps(a, b, c); }
static inline f32x8 fnma_8(f32x8 a, f32x8 b, f32x8 c) { return _mm256_fnmadd_ps(a, b, c); }

static inline f32x8 load_f32_8(const float *p) { return _mm256_loadu_ps(p); }
static inline void store_f32_8(float *p, f32x8 v) { _mm256_storeu_ps(p, v); }

static inline f32x8 load_f16_8(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static inline void store_f16_8(uint16_t *p, f32x8 v)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline f32x8 load_bf16_8(const uint16_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* In integers, because vcvtneps2bf16 flushes subnormals: see float16.h for the rounding. */
static inline void store_bf16_8(uint16_t *p, f32x8 v)
{
    __m256i u = _mm256_castps_si256(v), high = _mm256_srli_epi32(u, 16);
    __m256i bias = _mm256_add_epi32(_mm256_and_si256(high, _mm256_set1_epi32(1)),
                                    _mm256_set1_epi32(0x7fff));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, bias), 16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m256i half = _mm256_blendv_epi8(rounded, quiet, nan);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(half),
                                                    _mm256_extracti128_si256(half, 1)));
}

/* x0 x0 x1 x1 ...: half a vector of per-pair factors for adjacent channels. */
static inline f32x8 load_twice_8(const float *p)
{
    __m256i index = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), index);
}

static inline f32x8 swap_neighbours_8(f32x8 v) { return _mm256_permute_ps(v, 0xb1); }

/* -x0 x1 -x2 x3 ... */
static inline f32x8 negate_even_8(f32x8 v)
{
    return _mm256_xor_ps(v, _mm256_setr_ps(-0.f, 0, -0.f, 0, -0.f, 0, -0.f, 0));
}

static inline f32x4 set1_4(float x) { return _mm_set1_ps(x); }
static inline f32x4 add_4(f32x4 a, f32x4 b) { return _mm_add_ps(a, b); }
static inline f32x4 sub_4(f32x4 a, f32x4 b) { return _mm_sub_ps(a, b); }
static inline f32x4 mul_4(f32x4 a, f32x4 b) { return _mm_mul_ps(a, b); }
static inline f32x4 div_4(f32x4 a, f32x4 b) { return _mm_div_ps(a, b); }
static inline f32x4 fma_4(f32x4 a, f32x4 b, f32x4 c) { return _mm_fmadd_ps(a, b, c); }
static inline f32x4 fnma_4(f32x4 a, f32x4 b, f32x4 c) { return _mm_fnmadd_ps(a, b, c); }
static inline f32x4 load_f32_4(const float *p) { return _mm_loadu_ps(p); }
static inline void store_f32_4(float *p, f32x4 v) { _mm_storeu_ps(p, v); }

static inline f32x4 load_f16_4(const uint16_t *p)
{
    return _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)p));
}

static inline void store_f16_4(uint16_t *p, f32x4 v)
{
    _mm_storel_epi64((__m128i *)p, _mm_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline f32x4 load_bf16_4(const uint16_t *p)
{
    __m128i wide = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p));
    return _mm_castsi128_ps(_mm_slli_epi32(wide, 16));
}

static inline void store_bf16_4(uint16_t *p, f32x4 v)
{
    __m128i u = _mm_castps_si128(v), high = _mm_srli_epi32(u, 16);
    __m128i bias = _mm_add_epi32(_mm_and_si128(high, _mm_set1_epi32(1)), _mm_set1_epi32(0x7fff));
    __m128i rounded = _mm_srli_epi32(_mm_add_epi32(u, bias), 16);
    __m128i quiet = _mm_or_si128(high, _mm_set1_epi32(0x40));
    __m128i half = _mm_blendv_epi8(rounded, quiet, _mm_castps_si128(_mm_cmpunord_ps(v, v)));
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi32(half, half));
}

static inline f32x4 load_twice_4(const float *p)
{
    __m128 two = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)p));
    return _mm_unpacklo_ps(two, two);
}

static inline f32x4 swap_neighbours_4(f32x4 v) { return _mm_permute_ps(v, 0xb1); }

static inline f32x4 negate_even_4(f32x4 v)
{
    return _mm_xor_ps(v, _mm_setr_ps(-0.f, 0, -0.f, 0));
}

#endif
