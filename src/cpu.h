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

/* 1 if the CPU drops fetches of lines when many are under way, so that asking twice is faster. Pure
 * as well. */
int posenc_cpu_x86_drops_fetches(const struct posenc_cpuid *words);

/* Of this machine: the ISAs, and the bit POSENC_CPU_DROPS_FETCHES. */
#define POSENC_CPU_DROPS_FETCHES 0x80000000u
uint32_t posenc_cpu_features(void);

#endif
