/* SPDX-License-Identifier: MIT */
/* Between the pair layouts: weights, biases, norms, keys. See posenc.h for the conventions. */
#ifndef POSENC_POSENC_LAYOUTS_H
#define POSENC_POSENC_LAYOUTS_H

#include <posenc/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reorders the rotary window of every head from one pair layout to the other. With o the offset and
 * i < r/2, s = 0, 1: adjacent channel o + 2i + s is split_half channel o + s r/2 + i; other
 * channels stay. Channel = the head_dim axis, whichever dimension of the array that is:
 *
 *     cached keys, activations   posenc_permute_channels: [batch][token][head][channel]
 *     projection weights [heads*head_dim][columns], biases [heads*head_dim] (columns 1), norm
 *     weights [head_dim] (heads 1, columns 1), LoRA B factors [heads*head_dim][rank]
 *                                posenc_permute_rows: whole rows move
 *
 * Elements are copied as they are, by size: 1, 2, 4 or 8 bytes. `out` NULL or the same: in place.
 */
POSENC_API int32_t posenc_permute_rows(const void *in, void *out, size_t heads, size_t head_dim,
                                       size_t rotary_dim, size_t rotary_offset, size_t row_bytes,
                                       int32_t to, posenc_error *error);

/* The same along the channels of a view (F32, F16, BF16, F64). */
POSENC_API int32_t posenc_permute_channels(const posenc_tensor *in, const posenc_tensor *out,
                                           int32_t rotary_dim, int32_t rotary_offset, int32_t to,
                                           posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
