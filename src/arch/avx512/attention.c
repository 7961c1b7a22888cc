/* SPDX-License-Identifier: MIT */
/* Attention for AVX-512. */
#include "attention.h"

#include "vec.h"

#define ATTENTION_NAME posenc_attention_avx512
#include "kernels/attention.h"
