/* SPDX-License-Identifier: MIT */
/* The magnitude of YaRN, which sets attention factors and, for some families, the softmax scale. */
#ifndef POSENC_YARN_H
#define POSENC_YARN_H

#include "dd.h"

/*
 * g(s, m) = slope m ln s + 1 for s > 1, else 1 (rope.h, posenc_plan_create). A slope that is the
 * double nearest to a number of hundredths means that number: 0.1 is a tenth, 0.07 7/100.
 */
static inline posenc_dd posenc_yarn_magnitude_at(double s, double m, double slope)
{
    const posenc_dd one = {1.0, 0.0};
    if (s <= 1.0) {
        return one;
    }
    posenc_dd growth = posenc_dd_mul(posenc_dd_log(s), posenc_dd_from(m));
    double hundredths = posenc_dd_floor(posenc_dd_from(100.0 * slope + 0.5));
    if (slope == 0.1) {
        growth = posenc_dd_div(growth, posenc_dd_from(10.0));
    } else if (hundredths / 100.0 == slope) {
        growth = posenc_dd_mul(growth, posenc_dd_from(hundredths));
        growth = posenc_dd_div(growth, posenc_dd_from(100.0));
    } else {
        growth = posenc_dd_mul(growth, posenc_dd_from(slope));
    }
    return posenc_dd_add(growth, one);
}

/* The same with the slope of the paper, 0.1. */
static inline posenc_dd posenc_yarn_magnitude(double s, double m)
{
    return posenc_yarn_magnitude_at(s, m, 0.1);
}

#endif
