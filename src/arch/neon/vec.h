/* SPDX-License-Identifier: MIT */
/* The float vector layer of NEON on aarch64: 4 lanes. */
#ifndef POSENC_NEON_VEC_H
#define POSENC_NEON_VEC_H

#ifndef __aarch64__
#error "compile for aarch64"
#endif

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define POSENC_LANES 4
#define POSENC_REGISTERS 32

typedef float32x4_t f32x4;

/* GCC takes a function that does nothing but this for one without effect and may drop its calls:
 * the empty asm is one. */
static inline void prefetch_write(const void *p)
{
    __builtin_prefetch(p, 1, 3);
    __asm__ volatile("");
}

static inline f32x4 set1_4(float x) { return vdupq_n_f32(x); }
static inline f32x4 add_4(f32x4 a, f32x4 b) { return vaddq_f32(a, b); }
static inline f32x4 sub_4(f32x4 a, f32x4 b) { return vsubq_f32(a, b); }
static inline f32x4 mul_4(f32x4 a, f32x4 b) { return vmulq_f32(a, b); }
static inline f32x4 div_4(f32x4 a, f32x4 b) { return vdivq_f32(a, b); }
static inline f32x4 sqrt_4(f32x4 v) { return vsqrtq_f32(v); }
/* a*b + c and c - a*b, rounded once. */
static inline f32x4 fma_4(f32x4 a, f32x4 b, f32x4 c) { return vfmaq_f32(c, a, b); }
static inline f32x4 fnma_4(f32x4 a, f32x4 b, f32x4 c) { return vfmsq_f32(c, a, b); }
static inline f32x4 load_f32_4(const float *p) { return vld1q_f32(p); }
static inline void store_f32_4(float *p, f32x4 v) { vst1q_f32(p, v); }

/* The CPUs see by themselves that whole lines are written. */
static inline void stream_f32_4(float *p, f32x4 v) { vst1q_f32(p, v); }
static inline void stream_end(void) {}

static inline f32x4 load_f16_4(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

static inline void store_f16_4(uint16_t *p, f32x4 v)
{
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}

static inline f32x4 load_bf16_4(const uint16_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}

/* bf16 in the upper half of each lane, the lower half without meaning: see float16.h. */
static inline uint32x4_t round_bf16_4(f32x4 v)
{
    uint32x4_t u = vreinterpretq_u32_f32(v);
    uint32x4_t last = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(u, vaddq_u32(last, vdupq_n_u32(0x7fff)));
    return vbslq_u32(vceqq_f32(v, v), rounded, vorrq_u32(u, vdupq_n_u32(0x400000)));
}

static inline void store_bf16_4(uint16_t *p, f32x4 v)
{
    vst1_u16(p, vshrn_n_u32(round_bf16_4(v), 16));
}

/* 8 channels as their even and their odd ones: widening and narrowing need no shuffle then. */
typedef uint32x4_t bf16_pairs_4;

static inline bf16_pairs_4 load_even_odd_4(const uint16_t *p)
{
    return vreinterpretq_u32_u16(vld1q_u16(p));
}

static inline f32x4 even_bf16_4(bf16_pairs_4 both)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(both, 16));
}

static inline f32x4 odd_bf16_4(bf16_pairs_4 both)
{
    return vreinterpretq_f32_u32(vandq_u32(both, vdupq_n_u32(0xffff0000)));
}

static inline void store_even_odd_bf16_4(uint16_t *p, f32x4 even, f32x4 odd)
{
    uint32x4_t both = vsriq_n_u32(round_bf16_4(odd), round_bf16_4(even), 16);
    vst1q_u16(p, vreinterpretq_u16_u32(both));
}

/* Elements 0, 2, 4, ... and 1, 3, 5, ... of two vectors. */
static inline f32x4 even_of_4(f32x4 a, f32x4 b) { return vuzp1q_f32(a, b); }
static inline f32x4 odd_of_4(f32x4 a, f32x4 b) { return vuzp2q_f32(a, b); }

/* a0, b0, a1, b1, ... of the lower and of the upper halves of two vectors. */
static inline f32x4 zip_lower_4(f32x4 a, f32x4 b) { return vzip1q_f32(a, b); }
static inline f32x4 zip_upper_4(f32x4 a, f32x4 b) { return vzip2q_f32(a, b); }

/* x0 x0 x1 x1: half a vector of per-pair factors for adjacent channels. */
static inline f32x4 load_twice_4(const float *p)
{
    float32x2_t two = vld1_f32(p);
    float32x4_t four = vcombine_f32(two, two);
    return vzip1q_f32(four, four);
}

/* Keeps a loaded vector in its register: gcc would load it again for its second use. */
static inline f32x4 once_4(f32x4 v)
{
    __asm__("" : "+w"(v));
    return v;
}

static inline f32x4 swap_neighbours_4(f32x4 v) { return vrev64q_f32(v); }

/* -x0 x1 -x2 x3 */
static inline f32x4 negate_even_4(f32x4 v)
{
    uint32x4_t sign = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000));
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(v), sign));
}

/* x > m ? x : m in each lane: m where x is NaN. */
static inline f32x4 max_4(f32x4 x, f32x4 m) { return vbslq_f32(vcgtq_f32(x, m), x, m); }
static inline float first_4(f32x4 v) { return vgetq_lane_f32(v, 0); }

/* The largest lane of a vector without NaN. */
static inline float max_across_4(f32x4 v) { return vmaxvq_f32(v); }

/* The first n floats (n >= 0), then zeros; what lies behind them is not touched. */
static inline f32x4 load_first_4(const float *p, int64_t n)
{
    f32x4 v = vdupq_n_f32(0);
    if (n >= 4)
        return vld1q_f32(p);
    if (n > 0)
        v = vld1q_lane_f32(p, v, 0);
    if (n > 1)
        v = vld1q_lane_f32(p + 1, v, 1);
    if (n > 2)
        v = vld1q_lane_f32(p + 2, v, 2);
    return v;
}

/* 2^n from 1.5 * 2^23 + n, for -127 < n < 128. */
static inline f32x4 power_of_two_4(f32x4 shifted)
{
    uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23);
    return vreinterpretq_f32_u32(vaddq_u32(exponent, vdupq_n_u32(0x3f800000)));
}

/* x < limit ? +0 : y in each lane: y where x is NaN. */
static inline f32x4 zero_below_4(f32x4 x, f32x4 limit, f32x4 y)
{
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(y), vcltq_f32(x, limit)));
}

/* Every NaN becomes 0x7fc00000. */
static inline f32x4 canonical_nan_4(f32x4 v)
{
    uint32x4_t nan = vdupq_n_u32(0x7fc00000);
    return vreinterpretq_f32_u32(vbslq_u32(vceqq_f32(v, v), vreinterpretq_u32_f32(v), nan));
}

/* The sum of each of four vectors: halves are added until one lane is left. */
static inline f32x4 sum_each_4(f32x4 a, f32x4 b, f32x4 c, f32x4 d)
{
    f32x4 ab = vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)),
                         vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
    f32x4 cd = vaddq_f32(vcombine_f32(vget_low_f32(c), vget_low_f32(d)),
                         vcombine_f32(vget_high_f32(c), vget_high_f32(d)));
    return vpaddq_f32(ab, cd);
}

/* x < limit ? y : z in each lane: z where x is NaN. */
static inline f32x4 select_below_4(f32x4 x, f32x4 limit, f32x4 y, f32x4 z)
{
    return vbslq_f32(vcltq_f32(x, limit), y, z);
}

/* Bit i: lane i of x is below that of limit. */
static inline uint32_t bits_below_4(f32x4 x, f32x4 limit)
{
    const uint32x4_t bit = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vcltq_f32(x, limit), bit));
}

static inline f32x4 magnitude_4(f32x4 v) { return vabsq_f32(v); }

/* The sign of x set in y, which is not negative. */
static inline f32x4 with_sign_4(f32x4 y, f32x4 x)
{
    return vbslq_f32(vdupq_n_u32(0x80000000), x, y);
}

static inline f32x4 load_i8_4(const int8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof(four));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four)))));
}

/* Rounded to integers, ties to even; what is beyond 127 or -127 becomes that. Not of NaN. */
static inline void store_i8_4(int8_t *p, f32x4 v)
{
    v = vminq_f32(vmaxq_f32(v, vdupq_n_f32(-127.0f)), vdupq_n_f32(127.0f));
    int16x4_t half = vmovn_s32(vcvtnq_s32_f32(v));
    uint32_t four = vget_lane_u32(vreinterpret_u32_s8(vmovn_s16(vcombine_s16(half, half))), 0);
    memcpy(p, &four, sizeof(four));
}

/* The one whose bits are the larger integer, of vectors without signs: NaN is above infinity. */
static inline f32x4 max_bits_4(f32x4 a, f32x4 b)
{
    return vreinterpretq_f32_u32(vmaxq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b)));
}

static inline uint32_t max_bits_across_4(f32x4 v)
{
    return vmaxvq_u32(vreinterpretq_u32_f32(v));
}

#endif
