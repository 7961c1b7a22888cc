/* SPDX-License-Identifier: MIT */
/* What every file of the library relies on, and the conditions under which equal bits hold. */
#ifndef POSENC_COMMON_H
#define POSENC_COMMON_H

#include <float.h>
#include <posenc/posenc.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "libposenc promises exact bits: build it without -ffast-math and -ffinite-math-only"
#endif
/* 16: as 0, and _Float16 is no wider either. */
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "excess precision changes results: on 32-bit x86 build with -msse2 -mfpmath=sse"
#endif

/* Moves bits between types without breaking aliasing rules. */
static inline uint32_t posenc_bits32(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
static inline float posenc_float(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
static inline uint64_t posenc_bits64(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
static inline double posenc_double(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }

#endif
