/* SPDX-License-Identifier: MIT */
/* Sinusoids. */
#include "common.h"
#include "error.h"

void posenc_sinusoid_params_init(posenc_sinusoid_params *params)
{
    (void)params;
}

int32_t posenc_sinusoid_create(posenc_sinusoid **sinusoid, const posenc_sinusoid_params *params,
                            posenc_error *error)
{
    (void)sinusoid;
    (void)params;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

void posenc_sinusoid_free(posenc_sinusoid *sinusoid)
{
    (void)sinusoid;
}

int32_t posenc_sinusoid_fill(const posenc_sinusoid *sinusoid, const posenc_positions *positions,
                            const posenc_tensor *out, posenc_error *error)
{
    (void)sinusoid;
    (void)positions;
    (void)out;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_sinusoid_add(const posenc_sinusoid *sinusoid, const posenc_positions *positions,
                            double embedding_scale, const posenc_tensor *x,
                            const posenc_tensor *out, posenc_error *error)
{
    (void)sinusoid;
    (void)positions;
    (void)embedding_scale;
    (void)x;
    (void)out;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
