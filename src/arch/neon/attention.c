/* SPDX-License-Identifier: MIT */
/* Attention for NEON. */
#include "attention.h"

#include "vec.h"

#define ATTENTION_NAME posenc_attention_neon
#include "kernels/attention.h"
