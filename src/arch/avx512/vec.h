/* SPDX-License-Identifier: MIT */
/* The float vector layer of AVX-512: 16 lanes, and for tails the 8 and 4 lanes of AVX2. */
#ifndef POSENC_AVX512_VEC_H
#define POSENC_AVX512_VEC_H

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || \
    !defined(__AVX512VL__)
#error "compile with -mavx512f -mavx512bw -mavx512dq -mavx512vl"
#endif

#include "../avx2/vec.h"

#undef POSENC_LANES
#undef POSENC_REGISTERS
#define POSENC_LANES 16
#define POSENC_REGISTERS 32

typedef __m512 f32x16;

static inline f32x16 set1_16(float x) { return _mm512_set1_ps(x); }
static inline f32x16 add_16(f32x16 a, f32x16 b) { return _mm512_add_ps(a, b); }
static inline f32x16 sub_16(f32x16 a, f32x16 b) { return _mm512_sub_ps(a, b); }
static inline f32x16 mul_16(f32x16 a, f32x16 b) { return _mm512_mul_ps(a, b); }
static inline f32x16 div_16(f32x16 a, f32x16 b) { return _mm512_div_ps(a, b); }
static inline f32x16 fma_16(f32x16 a, f32x16 b, f32x16 c) { return _mm512_fmadd_ps(a, b, c); }
static inline f32x16 fnma_16(f32x16 a, f32x16 b, f32x16 c) { return _mm512_fnmadd_ps(a, b, c); }
static inline f32x16 load_f32_16(const float *p) { return _mm512_loadu_ps(p); }
static inline void store_f32_16(float *p, f32x16 v) { _mm512_storeu_ps(p, v); }
static inline void stream_f32_16(float *p, f32x16 v) { _mm512_stream_ps(p, v); }

/* Where an address is 32 bytes off a cache line, a vector costs more than its two halves. */
static inline f32x16 load_f32_halves_16(const float *p)
{
    __m512 lower = _mm512_castps256_ps512(_mm256_loadu_ps(p));
    return _mm512_insertf32x8(lower, _mm256_loadu_ps(p + 8), 1);
}

static inline void store_f32_halves_16(float *p, f32x16 v)
{
    _mm256_storeu_ps(p, _mm512_castps512_ps256(v));
    _mm256_storeu_ps(p + 8, _mm512_extractf32x8_ps(v, 1));
}

static inline f32x16 load_f16_16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline void store_f16_16(uint16_t *p, f32x16 v)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

/* One permutation: vpmovzxwd and a shift are two operations, on ports that products want as well.
 * It is one from Ice Lake and Zen 4 on, two before. */
static inline f32x16 load_bf16_16(const uint16_t *p)
{
    static const _Alignas(64) uint16_t upper[32] = {
        0, 0, 0, 1, 0, 2,  0, 3,  0, 4,  0, 5,  0, 6,  0, 7,
        0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
    __m512i x = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(0xaaaaaaaau, _mm512_load_si512(upper), x));
}

/* bf16 in the upper half of each lane, the lower half without meaning; rounded as in float16.h. In
 * integers, because vcvtneps2bf16 flushes subnormals. */
static inline __m512i round_bf16_16(f32x16 v)
{
    __m512i u = _mm512_castps_si512(v);
    __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    __m512i rounded = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
    rounded = _mm512_mask_add_epi32(rounded, odd, u, _mm512_set1_epi32(0x8000));
    return _mm512_mask_or_epi32(rounded, nan, u, _mm512_set1_epi32(0x400000));
}

static inline void store_bf16_16(uint16_t *p, f32x16 v)
{
    __m512i half = _mm512_srli_epi32(round_bf16_16(v), 16);
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(half));
}

/* 32 channels as their even and their odd ones: widening and narrowing need no shuffle then. */
typedef __m512i bf16_pairs_16;

static inline bf16_pairs_16 load_even_odd_16(const uint16_t *p)
{
    __m512i both = _mm512_loadu_si512(p);
    __asm__("" : "+v"(both)); /* as in once_16 */
    return both;
}

static inline f32x16 even_bf16_16(bf16_pairs_16 both)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
}

static inline f32x16 odd_bf16_16(bf16_pairs_16 both)
{
    __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    return _mm512_castsi512_ps(_mm512_and_si512(both, upper));
}

static inline void store_even_odd_bf16_16(uint16_t *p, f32x16 even, f32x16 odd)
{
    __m512i lower = _mm512_srli_epi32(round_bf16_16(even), 16);
    __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    /* lower | (odd & upper), in one */
    __m512i both = _mm512_ternarylogic_epi32(lower, round_bf16_16(odd), upper, 0xf8);
    _mm512_storeu_si512(p, both);
}

/* Elements 0, 2, 4, ... and 1, 3, 5, ... of two vectors. */
static inline f32x16 even_of_16(f32x16 a, f32x16 b)
{
    __m512i index =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, index, b);
}

static inline f32x16 odd_of_16(f32x16 a, f32x16 b)
{
    __m512i index =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, index, b);
}

/* a0, b0, a1, b1, ... of the lower and of the upper halves of two vectors. */
static inline f32x16 zip_lower_16(f32x16 a, f32x16 b)
{
    __m512i index = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, index, b);
}

static inline f32x16 zip_upper_16(f32x16 a, f32x16 b)
{
    __m512i index =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return _mm512_permutex2var_ps(a, index, b);
}

static inline f32x16 load_twice_16(const float *p)
{
    __m512i index = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}

/* Keeps a loaded vector in its register: gcc would load it again for its second use. */
static inline f32x16 once_16(f32x16 v)
{
    __asm__("" : "+v"(v));
    return v;
}

static inline f32x16 swap_neighbours_16(f32x16 v) { return _mm512_permute_ps(v, 0xb1); }

static inline f32x16 negate_even_16(f32x16 v)
{
    return _mm512_xor_ps(v, _mm512_castsi512_ps(_mm512_set1_epi64(0x80000000)));
}

static inline f32x16 max_16(f32x16 x, f32x16 m) { return _mm512_max_ps(x, m); }
static inline float max_across_16(f32x16 v) { return _mm512_reduce_max_ps(v); }
static inline float first_16(f32x16 v) { return _mm512_cvtss_f32(v); }

static inline f32x16 load_first_16(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff), p);
}

static inline f32x16 power_of_two_16(f32x16 shifted)
{
    __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(0x3f800000)));
}

static inline f32x16 zero_below_16(f32x16 x, f32x16 limit, f32x16 y)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), y);
}

static inline f32x16 canonical_nan_16(f32x16 v)
{
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_castsi512_ps(
        _mm512_mask_mov_epi32(_mm512_castps_si512(v), nan, _mm512_set1_epi32(0x7fc00000)));
}

/* The steps of the halving tree, lanes i and i + 8, then i and i + 4, and so on: two vectors with
 * partial sums of as many totals each become one with half as many of all. */
static inline f32x16 eights_16(f32x16 a, f32x16 b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}

static inline f32x16 fours_16(f32x16 a, f32x16 b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

static inline f32x16 twos_16(f32x16 a, f32x16 b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}

static inline f32x16 ones_16(f32x16 a, f32x16 b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

/* Four partial sums of each, a's first. */
static inline f32x16 fours_of_each_16(f32x16 a, f32x16 b, f32x16 c, f32x16 d)
{
    return fours_16(eights_16(a, b), eights_16(c, d));
}

static inline f32x4 sum_each_16(f32x16 a, f32x16 b, f32x16 c, f32x16 d)
{
    f32x16 four = fours_of_each_16(a, b, c, d);
    f32x16 two = _mm512_add_ps(four, _mm512_permute_ps(four, 0x4e));
    f32x16 one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xb1));
    __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, one));
}

/* Four to `to`, four to + step and so on. */
static inline void store_fours_16(float *to, size_t step, f32x16 v)
{
    _mm_storeu_ps(to, _mm512_castps512_ps128(v));
    _mm_storeu_ps(to + step, _mm512_extractf32x4_ps(v, 1));
    _mm_storeu_ps(to + 2 * step, _mm512_extractf32x4_ps(v, 2));
    _mm_storeu_ps(to + 3 * step, _mm512_extractf32x4_ps(v, 3));
}

/* Sums of four times four vectors, of which x, y, z, w are the fours: they share the last steps. */
static inline void store_sums_16(float *to, size_t step, f32x16 x, f32x16 y, f32x16 z, f32x16 w)
{
    const __m512i rows = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    f32x16 one = ones_16(twos_16(x, y), twos_16(z, w));
    store_fours_16(to, step, _mm512_permutexvar_ps(rows, one));
}

/* The same from the twos of the first two and of the last two vectors of each four. A pair's eights
 * make its fours, those of the first two fours and of the last two its twos. */
static inline void store_sums_of_pairs_16(float *to, size_t step, f32x16 first, f32x16 last)
{
    const __m512i rows = _mm512_setr_epi32(0, 4, 2, 6, 8, 12, 10, 14, 1, 5, 3, 7, 9, 13, 11, 15);
    store_fours_16(to, step, _mm512_permutexvar_ps(rows, ones_16(first, last)));
}

/* x < limit ? y : z in each lane: z where x is NaN. */
static inline f32x16 select_below_16(f32x16 x, f32x16 limit, f32x16 y, f32x16 z)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, limit, _CMP_LT_OQ), z, y);
}

/* Bit i: lane i of x is below that of limit. */
static inline uint32_t bits_below_16(f32x16 x, f32x16 limit)
{
    return _mm512_cmp_ps_mask(x, limit, _CMP_LT_OQ);
}

static inline f32x16 magnitude_16(f32x16 v) { return _mm512_abs_ps(v); }

/* The sign of x set in y, which is not negative. */
static inline f32x16 with_sign_16(f32x16 y, f32x16 x)
{
    return _mm512_or_ps(y, _mm512_and_ps(x, _mm512_set1_ps(-0.0f)));
}

static inline f32x16 load_i8_16(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

/* Rounded to integers, ties to even; what is beyond 127 or -127 becomes that. Not of NaN. */
static inline void store_i8_16(int8_t *p, f32x16 v)
{
    v = _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(-127.0f)), _mm512_set1_ps(127.0f));
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
}

/* The one whose bits are the larger integer, of vectors without signs: NaN is above infinity. */
static inline f32x16 max_bits_16(f32x16 a, f32x16 b)
{
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

static inline uint32_t max_bits_across_16(f32x16 v)
{
    return (uint32_t)_mm512_reduce_max_epi32(_mm512_castps_si512(v));
}

#endif
