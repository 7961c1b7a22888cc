/* SPDX-License-Identifier: MIT */
/* Rows from angles of the caller. */
#include "common.h"
#include "error.h"

int32_t posenc_rows_from_angles(const posenc_plan *plan, const posenc_tensor *angles,
                              const posenc_tensor *rows, posenc_error *error)
{
    (void)plan;
    (void)angles;
    (void)rows;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
