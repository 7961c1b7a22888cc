/* SPDX-License-Identifier: MIT */
/* The touch kernel of this ISA: not part of the library, the command measures against it. */
#define TOUCH_KERNEL touch_avx2
#define TOUCH_WIDTH 32
#include "../../kernels/touch.h"
