/* SPDX-License-Identifier: MIT */
/* Learned tables. */
#include "common.h"
#include "error.h"

int32_t posenc_learned_add(const posenc_tensor *table, int64_t offset,
                            const posenc_positions *positions, double embedding_scale,
                            const posenc_tensor *x, const posenc_tensor *out, int32_t isa,
                            posenc_error *error)
{
    (void)table;
    (void)offset;
    (void)positions;
    (void)embedding_scale;
    (void)x;
    (void)out;
    (void)isa;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_learned_rows(const int64_t *tokens, size_t batch, size_t count, int64_t padding,
                            int64_t past, int64_t *rows, posenc_error *error)
{
    (void)tokens;
    (void)batch;
    (void)count;
    (void)padding;
    (void)past;
    (void)rows;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_learned_resample(const posenc_tensor *table, int64_t rows, int64_t columns,
                            const posenc_tensor *out, int64_t out_rows, int64_t out_columns,
                            int32_t mode, posenc_error *error)
{
    (void)table;
    (void)rows;
    (void)columns;
    (void)out;
    (void)out_rows;
    (void)out_columns;
    (void)mode;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_learned_init(const posenc_tensor *table, double deviation, uint64_t seed,
                            posenc_error *error)
{
    (void)table;
    (void)deviation;
    (void)seed;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_learned_used(const posenc_tensor *table, double deviation, double low, double high,
                            uint8_t *used, int64_t *count, posenc_error *error)
{
    (void)table;
    (void)deviation;
    (void)low;
    (void)high;
    (void)used;
    (void)count;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
