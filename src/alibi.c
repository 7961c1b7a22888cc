/* SPDX-License-Identifier: MIT */
/* ALiBi slopes. */
#include "common.h"
#include "error.h"

int32_t posenc_alibi_slopes(double *slopes, int64_t first, int64_t count, int64_t heads,
                            double max_bias, posenc_error *error)
{
    (void)slopes;
    (void)first;
    (void)count;
    (void)heads;
    (void)max_bias;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
