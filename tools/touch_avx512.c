/* SPDX-License-Identifier: MIT */
/* The touch kernel with 64-byte vectors; compiled with -mavx512f. */
#define TOUCH_KERNEL touch_avx512
#define TOUCH_WIDTH 64
#include "touch_loop.h"
