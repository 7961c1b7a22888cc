/* SPDX-License-Identifier: MIT */
/* The double and integer vector layer of NEON for rows: 2 lanes, no fma. */
#ifndef POSENC_NEON_VECD_H
#define POSENC_NEON_VECD_H

#include <arm_neon.h>
#include <stdint.h>

enum { F64_LANES = 2 };
typedef float64x2_t f64s;
typedef uint64x2_t u64s;

static inline f64s set1_f64(double x) { return vdupq_n_f64(x); }
static inline f64s load_f64(const double *p) { return vld1q_f64(p); }
static inline void store_f64(double *p, f64s a) { vst1q_f64(p, a); }
static inline f64s add_f64(f64s a, f64s b) { return vaddq_f64(a, b); }
static inline f64s sub_f64(f64s a, f64s b) { return vsubq_f64(a, b); }
static inline f64s mul_f64(f64s a, f64s b) { return vmulq_f64(a, b); }
static inline u64s set1_u64(uint64_t x) { return vdupq_n_u64(x); }
static inline u64s add_u64(u64s a, u64s b) { return vaddq_u64(a, b); }
static inline u64s and_u64(u64s a, u64s b) { return vandq_u64(a, b); }
static inline u64s or_u64(u64s a, u64s b) { return vorrq_u64(a, b); }
static inline u64s xor_u64(u64s a, u64s b) { return veorq_u64(a, b); }
static inline u64s shift_left(u64s a, int n) { return vshlq_u64(a, vdupq_n_s64(n)); }
static inline u64s shift_right(u64s a, int n) { return vshlq_u64(a, vdupq_n_s64(-n)); }
/* Products of the lower halves, 64 bits wide. */
static inline u64s mul_u32(u64s a, u64s b) { return vmull_u32(vmovn_u64(a), vmovn_u64(b)); }
static inline u64s widen_u32(const uint32_t *p) { return vmovl_u32(vld1_u32(p)); }
static inline f64s from_u32(u64s a) { return vcvtq_f64_u64(a); } /* below 2^32: exact */
static inline f64s from_i64(u64s a) { return vcvtq_f64_s64(vreinterpretq_s64_u64(a)); }

static inline f64s xor_f64(f64s a, u64s bits)
{
    return vreinterpretq_f64_u64(veorq_u64(vreinterpretq_u64_f64(a), bits));
}

/* a where the top bit of `mask` is set, else b. */
static inline f64s select_by_top(u64s mask, f64s a, f64s b)
{
    u64s all = vreinterpretq_u64_s64(vshrq_n_s64(vreinterpretq_s64_u64(mask), 63));
    return vbslq_f64(all, a, b);
}

/* The floats of two vectors in one store, from which one load can be served at once. */
static inline void store_two_as_f32(float *p, f64s a, f64s b)
{
    vst1q_f32(p, vcombine_f32(vcvt_f32_f64(a), vcvt_f32_f64(b)));
}

static inline void store_as_f32(float *p, f64s a) { vst1_f32(p, vcvt_f32_f64(a)); }

#endif
