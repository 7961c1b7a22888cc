/* SPDX-License-Identifier: MIT */
/* Biases of ALiBi. */
#include "common.h"
#include "error.h"

void posenc_alibi_params_init(posenc_alibi_params *params)
{
    (void)params;
}

int32_t posenc_alibi_bias(const posenc_alibi_params *params, const posenc_tensor *bias,
                            posenc_error *error)
{
    (void)params;
    (void)bias;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
