/* SPDX-License-Identifier: MIT */
/*
 * The limit that kernels are measured against: every byte of a buffer read and written once, in
 * place, with next to no arithmetic. src/kernels/touch.h is compiled once for each vector width.
 */
#ifndef POSENC_TOUCH_H
#define POSENC_TOUCH_H

#include <stddef.h>
#include <stdint.h>

/* `runs` runs of `bytes` bytes each, `stride` bytes from one to the next. */
struct touch_job {
    void *data;
    size_t bytes, runs;
    ptrdiff_t stride;
    int multiply; /* 1: float32 x 1; 0: 16-bit data xor 0, which no bit pattern slows down */
};

typedef void touch_kernel(const struct touch_job *job);

touch_kernel touch_baseline, touch_avx2, touch_avx512;

/* The kernels that this CPU can run, at most 3: how many, and each with its name. */
int touch_kernels(touch_kernel *kernels[3], const char *names[3]);

/* 1 and 0 that no compiler can know. */
extern volatile float touch_one;
extern volatile uint32_t touch_zero;

#endif
