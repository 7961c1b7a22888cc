/* SPDX-License-Identifier: MIT */
/* Distances times a slope in plain C: the fallback everywhere, and the oracle of the others. */
#include "../../kernels.h"

/* The addition makes +0 of -0 and changes nothing else. */
void posenc_scale_scalar(const double *distances, size_t count, double slope, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(distances[i] * slope + 0.0);
}
