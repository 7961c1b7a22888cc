/* SPDX-License-Identifier: MIT */
/* Which touch kernels this CPU can run, and the one that every CPU can. */
#define TOUCH_KERNEL touch_baseline
#define TOUCH_WIDTH 16
#include "../src/kernels/touch.h"

#include <posenc/posenc.h>

volatile float touch_one = 1;
volatile uint32_t touch_zero = 0;

int touch_kernels(touch_kernel *kernels[3], const char *names[3])
{
    int count = 0;
    kernels[count] = touch_baseline;
    names[count++] = "baseline";
#if defined(__x86_64__)
    if (posenc_isa_available(POSENC_ISA_AVX2)) {
        kernels[count] = touch_avx2;
        names[count++] = "avx2";
    }
    if (posenc_isa_available(POSENC_ISA_AVX512)) {
        kernels[count] = touch_avx512;
        names[count++] = "avx512";
    }
#endif
    return count;
}
