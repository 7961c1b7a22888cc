/* SPDX-License-Identifier: MIT */
/* The sinusoid kernel of this ISA. */
#include "vec.h"
#include "vecd.h"

static inline f32x4 narrow(f64s a, f64s b)
{
    return vcvt_high_f32_f64(vcvt_f32_f64(a), b);
}

static inline f32x4 narrow_zip(f64s a, f64s b)
{
    float32x2_t even = vcvt_f32_f64(a), odd = vcvt_f32_f64(b);
    return vcombine_f32(vzip1_f32(even, odd), vzip2_f32(even, odd));
}

#define KERNEL(name) posenc_##name##_neon
#include "../../kernels/sinusoid.h"
