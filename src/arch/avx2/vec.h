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

/* GCC takes a function that does nothing but this for one without effect and may drop its calls:
 * the empty asm is one. */
static inline void prefetch_write(const void *p)
{
    __builtin_prefetch(p, 1, 3);
    __asm__ volatile("");
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

/* Past the caches, to an aligned address: no line is read that will be overwritten whole. These
 * stores are ordered by stream_end alone. */
static inline void stream_f32_8(float *p, f32x8 v) { _mm256_stream_ps(p, v); }
static inline void stream_end(void) { _mm_sfence(); }

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

/* bf16 in the upper half of each lane, the lower half without meaning; rounded as in float16.h. In
 * integers, because vcvtneps2bf16 flushes subnormals. */
static inline __m256i round_bf16_8(f32x8 v)
{
    __m256i u = _mm256_castps_si256(v), one = _mm256_set1_epi32(1);
    __m256i last = _mm256_and_si256(_mm256_srli_epi32(u, 16), one);
    __m256i bias = _mm256_add_epi32(last, _mm256_set1_epi32(0x7fff));
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(_mm256_add_epi32(u, bias), quiet, nan);
}

static inline void store_bf16_8(uint16_t *p, f32x8 v)
{
    __m256i half = _mm256_srli_epi32(round_bf16_8(v), 16);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(half),
                                                    _mm256_extracti128_si256(half, 1)));
}

/* 16 channels as their even and their odd ones: widening and narrowing need no shuffle then. */
typedef __m256i bf16_pairs_8;

static inline bf16_pairs_8 load_even_odd_8(const uint16_t *p)
{
    __m256i both = _mm256_loadu_si256((const __m256i *)p);
    __asm__("" : "+x"(both)); /* as in once_8 */
    return both;
}

static inline f32x8 even_bf16_8(bf16_pairs_8 both)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
}

static inline f32x8 odd_bf16_8(bf16_pairs_8 both)
{
    return _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32((int)0xffff0000)));
}

/* The same from memory, each with a load of its own: one operation on AVX-512. */
static inline f32x8 load_even_bf16_8(const uint16_t *p)
{
    return even_bf16_8(_mm256_loadu_si256((const __m256i *)p));
}

static inline f32x8 load_odd_bf16_8(const uint16_t *p)
{
    return odd_bf16_8(_mm256_loadu_si256((const __m256i *)p));
}

static inline void store_even_odd_bf16_8(uint16_t *p, f32x8 even, f32x8 odd)
{
    __m256i lower = _mm256_srli_epi32(round_bf16_8(even), 16);
    _mm256_storeu_si256((__m256i *)p, _mm256_blend_epi16(lower, round_bf16_8(odd), 0xaa));
}

/* Elements 0, 2, 4, ... and 1, 3, 5, ... of two vectors. */
static inline f32x8 even_of_8(f32x8 a, f32x8 b)
{
    __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, 0xd8));
}

static inline f32x8 odd_of_8(f32x8 a, f32x8 b)
{
    __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, 0xd8));
}

/* a0, b0, a1, b1, ... of the lower and of the upper halves of two vectors. */
static inline f32x8 zip_lower_8(f32x8 a, f32x8 b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
}

static inline f32x8 zip_upper_8(f32x8 a, f32x8 b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
}

/* x0 x0 x1 x1 ...: half a vector of per-pair factors for adjacent channels. */
static inline f32x8 load_twice_8(const float *p)
{
    __m256i index = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), index);
}

/* Keeps a loaded vector in its register: gcc would load it again for its second use. */
static inline f32x8 once_8(f32x8 v)
{
    __asm__("" : "+x"(v));
    return v;
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
static inline f32x4 sqrt_4(f32x4 v) { return _mm_sqrt_ps(v); }
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

static inline __m128i round_bf16_4(f32x4 v)
{
    __m128i u = _mm_castps_si128(v), one = _mm_set1_epi32(1);
    __m128i last = _mm_and_si128(_mm_srli_epi32(u, 16), one);
    __m128i bias = _mm_add_epi32(last, _mm_set1_epi32(0x7fff));
    __m128i quiet = _mm_or_si128(u, _mm_set1_epi32(0x400000));
    __m128i nan = _mm_castps_si128(_mm_cmpunord_ps(v, v));
    return _mm_blendv_epi8(_mm_add_epi32(u, bias), quiet, nan);
}

static inline void store_bf16_4(uint16_t *p, f32x4 v)
{
    __m128i half = _mm_srli_epi32(round_bf16_4(v), 16);
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi32(half, half));
}

typedef __m128i bf16_pairs_4;

static inline bf16_pairs_4 load_even_odd_4(const uint16_t *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

static inline f32x4 even_bf16_4(bf16_pairs_4 both)
{
    return _mm_castsi128_ps(_mm_slli_epi32(both, 16));
}

static inline f32x4 odd_bf16_4(bf16_pairs_4 both)
{
    return _mm_castsi128_ps(_mm_and_si128(both, _mm_set1_epi32((int)0xffff0000)));
}

static inline void store_even_odd_bf16_4(uint16_t *p, f32x4 even, f32x4 odd)
{
    __m128i lower = _mm_srli_epi32(round_bf16_4(even), 16);
    _mm_storeu_si128((__m128i *)p, _mm_blend_epi16(lower, round_bf16_4(odd), 0xaa));
}

static inline f32x4 even_of_4(f32x4 a, f32x4 b) { return _mm_shuffle_ps(a, b, 0x88); }
static inline f32x4 odd_of_4(f32x4 a, f32x4 b) { return _mm_shuffle_ps(a, b, 0xdd); }

static inline f32x4 zip_lower_4(f32x4 a, f32x4 b) { return _mm_unpacklo_ps(a, b); }
static inline f32x4 zip_upper_4(f32x4 a, f32x4 b) { return _mm_unpackhi_ps(a, b); }

static inline f32x4 load_twice_4(const float *p)
{
    __m128 two = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)p));
    return _mm_unpacklo_ps(two, two);
}

static inline f32x4 once_4(f32x4 v)
{
    __asm__("" : "+x"(v));
    return v;
}

static inline f32x4 swap_neighbours_4(f32x4 v) { return _mm_permute_ps(v, 0xb1); }

static inline f32x4 negate_even_4(f32x4 v)
{
    return _mm_xor_ps(v, _mm_setr_ps(-0.f, 0, -0.f, 0));
}

/* x > m ? x : m in each lane: m where x is NaN. */
static inline f32x8 max_8(f32x8 x, f32x8 m) { return _mm256_max_ps(x, m); }
static inline float first_8(f32x8 v) { return _mm256_cvtss_f32(v); }

/* The largest lane of a vector without NaN. */
static inline float max_across_8(f32x8 v)
{
    f32x4 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    f32x4 two = _mm_max_ps(four, _mm_permute_ps(four, 0x4e));
    return _mm_cvtss_f32(_mm_max_ps(two, _mm_permute_ps(two, 0xb1)));
}

/* The first n floats (n >= 0), then zeros; what lies behind them is not touched. */
static inline f32x8 load_first_8(const float *p, int64_t n)
{
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 8 ? (int)n : 8), lane));
}

/* 2^n from 1.5 * 2^23 + n, for -127 < n < 128. */
static inline f32x8 power_of_two_8(f32x8 shifted)
{
    __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(0x3f800000)));
}

/* x < limit ? +0 : y in each lane: y where x is NaN. */
static inline f32x8 zero_below_8(f32x8 x, f32x8 limit, f32x8 y)
{
    return _mm256_andnot_ps(_mm256_cmp_ps(x, limit, _CMP_LT_OQ), y);
}

/* Every NaN becomes 0x7fc00000. */
static inline f32x8 canonical_nan_8(f32x8 v)
{
    f32x8 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

/* The steps of the halving tree: four sums of halves each of two vectors, two of each of four, one
 * of each of four. */
static inline f32x8 fours_8(f32x8 a, f32x8 b)
{
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

static inline f32x8 twos_8(f32x8 ac, f32x8 bd)
{
    return _mm256_add_ps(_mm256_shuffle_ps(ac, bd, 0x44), _mm256_shuffle_ps(ac, bd, 0xee));
}

static inline f32x4 ones_8(f32x8 two)
{
    f32x8 one = _mm256_add_ps(two, _mm256_permute_ps(two, 0xb1));
    return _mm_shuffle_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1), 0x88);
}

/* The sums of eight: of the lower halves' four, then of the upper halves'. */
static inline f32x8 eight_ones_8(f32x8 ab, f32x8 cd)
{
    return _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x88), _mm256_shuffle_ps(ab, cd, 0xdd));
}

/* Lane i of the lower and of the upper half to `to` + i * step. */
static inline void store_two_each_8(float *to, size_t step, f32x8 v)
{
    const f32x4 a = _mm256_castps256_ps128(v), b = _mm256_extractf128_ps(v, 1);
    const f32x4 first = _mm_unpacklo_ps(a, b), last = _mm_unpackhi_ps(a, b);
    _mm_storel_pi((__m64 *)to, first);
    _mm_storeh_pi((__m64 *)(to + step), first);
    _mm_storel_pi((__m64 *)(to + 2 * step), last);
    _mm_storeh_pi((__m64 *)(to + 3 * step), last);
}

/* The sum of each of four vectors: halves are added until one lane is left. */
static inline f32x4 sum_each_8(f32x8 a, f32x8 b, f32x8 c, f32x8 d)
{
    return ones_8(twos_8(fours_8(a, c), fours_8(b, d)));
}

/* x < limit ? y : z in each lane: z where x is NaN. */
static inline f32x8 select_below_8(f32x8 x, f32x8 limit, f32x8 y, f32x8 z)
{
    return _mm256_blendv_ps(z, y, _mm256_cmp_ps(x, limit, _CMP_LT_OQ));
}

/* Bit i: lane i of x is below that of limit. */
static inline uint32_t bits_below_8(f32x8 x, f32x8 limit)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, limit, _CMP_LT_OQ));
}

static inline f32x8 magnitude_8(f32x8 v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }

/* The sign of x set in y, which is not negative. */
static inline f32x8 with_sign_8(f32x8 y, f32x8 x)
{
    return _mm256_or_ps(y, _mm256_and_ps(x, _mm256_set1_ps(-0.0f)));
}

static inline f32x8 load_i8_8(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

/* Rounded to integers, ties to even; what is beyond 127 or -127 becomes that. Not of NaN. */
static inline void store_i8_8(int8_t *p, f32x8 v)
{
    v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(-127.0f)), _mm256_set1_ps(127.0f));
    __m256i wide = _mm256_cvtps_epi32(v);
    __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(wide),
                                   _mm256_extracti128_si256(wide, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(half, half));
}

/* The one whose bits are the larger integer, of vectors without signs: NaN is above infinity. */
static inline f32x8 max_bits_8(f32x8 a, f32x8 b)
{
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}

static inline uint32_t max_bits_across_8(f32x8 v)
{
    __m256i u = _mm256_castps_si256(v);
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
    __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

#endif
