/* SPDX-License-Identifier: MIT */
/* Builders of position ids. */
#include "common.h"
#include "error.h"

int32_t posenc_ids_multimodal(const posenc_segment *segments, size_t count, int64_t first,
                              int64_t *ids, size_t tokens, int64_t *next, int64_t *delta,
                              posenc_error *error)
{
    (void)segments;
    (void)count;
    (void)first;
    (void)ids;
    (void)tokens;
    (void)next;
    (void)delta;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_ids_from_mask(const uint8_t *mask, size_t batch, size_t tokens, int64_t padding,
                             int64_t *ids, posenc_error *error)
{
    (void)mask;
    (void)batch;
    (void)tokens;
    (void)padding;
    (void)ids;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_ids_packed(const int64_t *offsets, size_t sequences, const int64_t *starts,
                          int64_t *ids, size_t tokens, posenc_error *error)
{
    (void)offsets;
    (void)sequences;
    (void)starts;
    (void)ids;
    (void)tokens;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_ids_context_parallel(int64_t tokens, int64_t rank, int64_t ranks, int64_t *ids,
                              size_t count, posenc_error *error)
{
    (void)tokens;
    (void)rank;
    (void)ranks;
    (void)ids;
    (void)count;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_ids_grid(int64_t rows, int64_t columns, int64_t merge, int32_t normalised,
                        double *ids, size_t count, posenc_error *error)
{
    (void)rows;
    (void)columns;
    (void)merge;
    (void)normalised;
    (void)ids;
    (void)count;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
