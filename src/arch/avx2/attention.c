/* SPDX-License-Identifier: MIT */
/* Attention for AVX2. */
#include "attention.h"

#include "vec.h"

#define ATTENTION_NAME posenc_attention_avx2
#include "kernels/attention.h"
