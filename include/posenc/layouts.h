/* SPDX-License-Identifier: MIT */
/* Between the pair layouts: weights, biases, norms, keys. See posenc.h for the conventions. */
#ifndef POSENC_POSENC_LAYOUTS_H
#define POSENC_POSENC_LAYOUTS_H

#include <posenc/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reorders the rotary window of every head from one pair layout to the other: `to`. With o the
 * offset and i < r/2, s = 0, 1: adjacent channel o + 2i + s is split_half channel o + s r/2 + i;
 * other channels stay. Channel = the head_dim axis, whichever dimension of the array that is:
 *
 *     cached keys, activations   posenc_permute_channels: [batch][token][head][channel]
 *     projection weights [heads*head_dim][columns], biases [heads*head_dim] (columns 1), norm
 *     weights [head_dim] (heads 1, columns 1), LoRA B factors [heads*head_dim][rank]
 *                                posenc_permute_rows: whole rows of row_bytes >= 1 bytes move
 *
 *     for (h, i, s)                                              // to = POSENC_ADJACENT
 *         out[h*head_dim + o + 2*i + s] = in[h*head_dim + o + s*r/2 + i]
 *     for (h, i, s)                                              // to = POSENC_SPLIT_HALF
 *         out[h*head_dim + o + s*r/2 + i] = in[h*head_dim + o + 2*i + s]
 *
 * Bits are copied as they are, NaN included. rotary_dim (r) is even, 2..65536, at most head_dim -
 * rotary_offset. `out` NULL or the same as `in`: in place; otherwise they share no memory. Needs no
 * alignment and does not allocate. 0 heads are nothing to do. docs/layouts.md says what must be
 * permuted together.
 */
POSENC_API int32_t posenc_permute_rows(const void *in, void *out, size_t heads, size_t head_dim,
                                       size_t rotary_dim, size_t rotary_offset, size_t row_bytes,
                                       int32_t to, posenc_error *error);

/* The same along the channels of a view of F32, F16, BF16 or F64, head_dim = in->shape[3]. `out`
 * has the dtype and shape of `in`, any strides. */
POSENC_API int32_t posenc_permute_channels(const posenc_tensor *in, const posenc_tensor *out,
                                           int32_t rotary_dim, int32_t rotary_offset, int32_t to,
                                           posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
