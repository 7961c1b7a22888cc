/* SPDX-License-Identifier: MIT */
/* The sinusoid kernel of this ISA. */
#include "vec.h"
#include "vecd.h"

static inline f32x16 narrow(f64s a, f64s b)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a)), _mm512_cvtpd_ps(b), 1);
}

static inline f32x16 narrow_zip(f64s a, f64s b)
{
    const __m512i turns = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(_mm512_castps256_ps512(_mm512_cvtpd_ps(a)), turns,
                                  _mm512_castps256_ps512(_mm512_cvtpd_ps(b)));
}

#define KERNEL(name) posenc_##name##_avx512
#include "../../kernels/sinusoid.h"
