/* SPDX-License-Identifier: MIT */
/* The fingerprint of a plan. */
#include "common.h"
#include "error.h"

int32_t posenc_plan_fingerprint(const posenc_plan *plan, uint8_t *fingerprint, posenc_error *error)
{
    (void)plan;
    (void)fingerprint;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
