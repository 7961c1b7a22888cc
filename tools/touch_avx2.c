/* SPDX-License-Identifier: MIT */
/* The touch kernel with 32-byte vectors; compiled with -mavx2. */
#define TOUCH_KERNEL touch_avx2
#define TOUCH_WIDTH 32
#include "touch_loop.h"
