/* SPDX-License-Identifier: MIT */
/* Channels of many heads copied or converted: what a rotation leaves as it is. */
#ifndef POSENC_COPY_CHANNELS_H
#define POSENC_COPY_CHANNELS_H

#include "kernels.h"
#include "tensor.h"

/* The same channels of every head and token. Strides count bytes. */
struct posenc_copy {
    int32_t from, to; /* dtypes */
    ptrdiff_t src_token, src_head, dst_token, dst_head;
    int64_t tokens, heads, channels;
};

static inline void posenc_copy_channels(const struct posenc_kernels *kernels,
                                        const struct posenc_copy *copy, const char *src, char *dst)
{
    posenc_convert_kernel *convert =
        copy->from == copy->to ? NULL : kernels->convert[copy->from - 1][copy->to - 1];
    const size_t bytes = (size_t)(copy->channels * posenc_dtype_size(copy->from));
    for (int64_t t = 0; t < copy->tokens; t++)
        for (int64_t h = 0; h < copy->heads; h++) {
            const char *in = src + (ptrdiff_t)t * copy->src_token + (ptrdiff_t)h * copy->src_head;
            char *out = dst + (ptrdiff_t)t * copy->dst_token + (ptrdiff_t)h * copy->dst_head;
            if (convert)
                convert(in, out, (size_t)copy->channels);
            else
                memcpy(out, in, bytes);
        }
}

#endif
