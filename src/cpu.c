/* SPDX-License-Identifier: MIT */
/* What the CPU and its operating system can run: the only place that asks. */
#include "cpu.h"

#include "common.h"

enum {
    FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29, /* leaf 1, ecx */
    AVX2 = 1 << 5, AVX512F = 1 << 16, AVX512DQ = 1 << 17, AVX512BW = 1 << 30 /* leaf 7, ebx */
};
#define AVX512VL (1u << 31)

/* The register state that the operating system saves: without it an instruction may work and its
 * registers still change under our feet. */
enum { XCR0_YMM = 0x06, XCR0_ZMM = 0xe6 };

uint32_t posenc_cpu_x86(const struct posenc_cpuid *words)
{
    const uint32_t avx2_1 = FMA | OSXSAVE | AVX | F16C;
    const uint32_t avx512_7 = AVX2 | AVX512F | AVX512DQ | AVX512BW | AVX512VL;
    uint32_t isas = 1u << POSENC_ISA_SCALAR;

    if ((words->leaf1_ecx & avx2_1) != avx2_1 || (words->xcr0 & XCR0_YMM) != XCR0_YMM)
        return isas;
    if (words->leaf7_ebx & AVX2)
        isas |= 1u << POSENC_ISA_AVX2;
    if ((words->leaf7_ebx & avx512_7) == avx512_7 && (words->xcr0 & XCR0_ZMM) == XCR0_ZMM)
        isas |= 1u << POSENC_ISA_AVX512;
    return isas;
}

int posenc_cpu_x86_is_amd(const struct posenc_cpuid *words)
{
    return memcmp(words->vendor, "AuthenticAMD", sizeof(words->vendor)) == 0 ||
           memcmp(words->vendor, "HygonGenuine", sizeof(words->vendor)) == 0;
}

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

uint32_t posenc_cpu_features(void)
{
    struct posenc_cpuid words = {0, 0, 0, {0, 0, 0}};
    uint32_t eax, ebx, ecx, edx;
    (void)__get_cpuid(0, &eax, &words.vendor[0], &words.vendor[2], &words.vendor[1]);
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx))
        words.leaf1_ecx = ecx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        words.leaf7_ebx = ebx;
    if (words.leaf1_ecx & OSXSAVE)
        words.xcr0 = read_xcr0();
    return posenc_cpu_x86(&words) |
           (posenc_cpu_x86_is_amd(&words) ? POSENC_CPU_AMD : 0);
}

#elif defined(__aarch64__)

uint32_t posenc_cpu_features(void)
{
    return 1u << POSENC_ISA_SCALAR | 1u << POSENC_ISA_NEON; /* part of the base architecture */
}

#else

uint32_t posenc_cpu_features(void)
{
    return 1u << POSENC_ISA_SCALAR;
}

#endif
