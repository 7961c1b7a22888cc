/* SPDX-License-Identifier: MIT */
/* The touch kernel of this ISA: not part of the library, the command measures against it. */
#define TOUCH_KERNEL touch_avx512
#define TOUCH_WIDTH 64
#include "../../kernels/touch.h"
