/* SPDX-License-Identifier: MIT */
/* The sinusoid kernel of this ISA. */
#include "vec.h"
#include "vecd.h"

static inline f32x8 narrow(f64s a, f64s b)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(b), _mm256_cvtpd_ps(a));
}

static inline f32x8 narrow_zip(f64s a, f64s b)
{
    __m128 even = _mm256_cvtpd_ps(a), odd = _mm256_cvtpd_ps(b);
    return _mm256_set_m128(_mm_unpackhi_ps(even, odd), _mm_unpacklo_ps(even, odd));
}

#define KERNEL(name) posenc_##name##_avx2
#include "../../kernels/sinusoid.h"
