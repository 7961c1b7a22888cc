/* SPDX-License-Identifier: MIT */
/* What the CPU and its operating system can run. */
#ifndef POSENC_CPU_H
#define POSENC_CPU_H

#include <stdint.h>

/* The words that decide on x86. xcr0 counts only if the system made it readable (OSXSAVE). */
struct posenc_cpuid {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx; /* 0 where the CPU has no leaf 7 */
    uint64_t xcr0;
    uint32_t vendor[3]; /* leaf 0: ebx, edx, ecx, twelve letters */
};

/* Bit i of the result: POSENC_ISA_ value i can run. A pure function, so that every CPU and every
 * state of an operating system can be tested on any machine. */
uint32_t posenc_cpu_x86(const struct posenc_cpuid *words);

/* 1 for CPUs of AMD and Hygon, which want memory asked for in another way: posenc_asks_ahead and
 * posenc_fetches_twice of kernels.h. Pure as well. */
int posenc_cpu_x86_is_amd(const struct posenc_cpuid *words);

/* Of this machine: the ISAs, and this bit. */
#define POSENC_CPU_AMD 0x80000000u
uint32_t posenc_cpu_features(void);

#endif
