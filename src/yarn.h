/* SPDX-License-Identifier: MIT */
/* The magnitude of YaRN, which sets attention factors and, for some families, the softmax scale. */
#ifndef POSENC_YARN_H
#define POSENC_YARN_H

#include "dd.h"

/* g(s, m) = 0.1 m ln s + 1 for s > 1, else 1 (posenc.h, posenc_plan_create). */
static inline posenc_dd posenc_yarn_magnitude(double s, double m)
{
    const posenc_dd one = {1.0, 0.0};
    if (s <= 1.0) {
        return one;
    }
    posenc_dd growth = posenc_dd_mul(posenc_dd_log(s), posenc_dd_from(m));
    return posenc_dd_add(posenc_dd_div(growth, posenc_dd_from(10.0)), one);
}

#endif
