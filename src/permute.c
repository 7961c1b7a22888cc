/* SPDX-License-Identifier: MIT */
/* Between the pair layouts. */
#include "common.h"
#include "error.h"

int32_t posenc_permute_rows(const void *in, void *out, size_t heads, size_t head_dim,
                            size_t rotary_dim, size_t rotary_offset, size_t row_bytes, int32_t to,
                            posenc_error *error)
{
    (void)in;
    (void)out;
    (void)heads;
    (void)head_dim;
    (void)rotary_dim;
    (void)rotary_offset;
    (void)row_bytes;
    (void)to;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_permute_channels(const posenc_tensor *in, const posenc_tensor *out,
                            int32_t rotary_dim, int32_t rotary_offset, int32_t to,
                            posenc_error *error)
{
    (void)in;
    (void)out;
    (void)rotary_dim;
    (void)rotary_offset;
    (void)to;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
