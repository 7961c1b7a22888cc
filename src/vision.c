/* SPDX-License-Identifier: MIT */
/* Parameters of the rotations of image encoders. */
#include "common.h"
#include "error.h"

int32_t posenc_vision_params(posenc_rope_params *params, int32_t form, int32_t head_dim,
                             double base, double *inv_freq, int32_t *axis_of_pair,
                             posenc_error *error)
{
    (void)params;
    (void)form;
    (void)head_dim;
    (void)base;
    (void)inv_freq;
    (void)axis_of_pair;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
