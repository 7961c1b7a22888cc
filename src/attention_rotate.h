/* SPDX-License-Identifier: MIT */
/* Rotation inside attention: one head into floats, with the bits of posenc_rotate. */
#ifndef POSENC_ATTENTION_ROTATE_H
#define POSENC_ATTENTION_ROTATE_H

#include "attention_scales.h"
#include "plan.h"

/* A head of q or k, widened and rotated by a row [cos | sin], not rounded to its own dtype; map:
 * see posenc_attention_widen_head. `to` has room for its channels. */
void posenc_attention_rotate(const struct posenc_kernels *kernels, const posenc_plan *plan,
                             const posenc_tensor *t, const struct posenc_cache_map *map,
                             struct posenc_attention_head head, const float *row, float *to);

/* A head of results turned the other way (INVERSE), apart from `to`. */
void posenc_attention_turn_back(const struct posenc_kernels *kernels, const posenc_plan *plan,
                                const float *head, int64_t channels, const float *row, float *to);

#endif
