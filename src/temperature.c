/* SPDX-License-Identifier: MIT */
/* The query temperature. */
#include "common.h"
#include "error.h"

int32_t posenc_query_temperature(double factor, int64_t period, int64_t offset,
                              const posenc_positions *positions, const posenc_tensor *scale,
                              posenc_error *error)
{
    (void)factor;
    (void)period;
    (void)offset;
    (void)positions;
    (void)scale;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
