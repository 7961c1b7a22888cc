/* SPDX-License-Identifier: MIT */
/* The kernels of biases in plain C: the fallback everywhere, and the oracle of the others. */
#include <string.h>

#include "../../kernels.h"

/* The addition makes +0 of -0 and changes nothing else. */
void posenc_scale_scalar(const double *distances, size_t count, double slope, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(distances[i] * slope + 0.0);
}

void posenc_windows_scalar(const char *line, ptrdiff_t move, char *row, ptrdiff_t step,
                           size_t bytes, size_t rows)
{
    for (size_t i = 0; i < rows; i++, line += move, row += step)
        memcpy(row, line, bytes);
}
