/* SPDX-License-Identifier: MIT */
/* The library's internal kernel table for C++; standard headers come first, outside extern "C". */
#ifndef POSENC_BENCH_KERNELS_CXX_H
#define POSENC_BENCH_KERNELS_CXX_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern "C" {
#include "kernels.h"
}

#endif
