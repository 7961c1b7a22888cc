/* SPDX-License-Identifier: MIT */
/* The frequencies of a sinusoid: powers of a root, or exponentials where its degree is real. */
#include "dd.h"
#include "sinusoid.h"

/* base^(-i / degree), degree > 0. */
struct powers {
    int32_t root_degree; /* 0: no root, by logarithms */
    int32_t steps;       /* of the root from i to i + 1 */
    posenc_dd root, log_base, degree;
};

/*
 * A degree that is an integer, or half of one (odd widths), is a root and its powers, like the
 * frequencies of a rotation. `difference` holds numerator - shift without an error.
 */
static struct powers powers_of(double base, posenc_dd difference)
{
    struct powers by = {.log_base = posenc_dd_log(base), .degree = difference};
    const double twice = 2 * difference.hi;
    if (difference.lo == 0 && twice < 0x1p20 && twice == (double)(int32_t)twice) {
        by.steps = (int32_t)twice % 2 ? 2 : 1;
        by.root_degree = by.steps * (int32_t)twice / 2;
        by.root = posenc_dd_inverse_root(posenc_dd_from(base), by.root_degree);
    }
    return by;
}

/* What is smaller than e^-600 turns by less than the last place of an angle and counts as 0. */
static posenc_dd power_of(const struct powers *by, int32_t i)
{
    posenc_dd exponent = posenc_dd_mul(by->log_base, posenc_dd_from((double)i));
    if (!(exponent.hi < 600 * by->degree.hi))
        return posenc_dd_from(0);
    if (by->root_degree)
        return posenc_dd_power(by->root, by->steps * i);
    return posenc_dd_exp(posenc_dd_negate(posenc_dd_div(exponent, by->degree)));
}

void posenc_sinusoid_frequencies(const posenc_sinusoid_params *params, int32_t dim,
                                 double *frequencies)
{
    const double numerator = posenc_sinusoid_numerator(params, dim);
    const struct powers by = powers_of(params->base, posenc_dd_sum(numerator, -params->shift));
    const int32_t pairs = posenc_sinusoid_pairs(params, dim);
    for (int32_t i = 0; i < pairs; i++)
        frequencies[i] = posenc_dd_mul(power_of(&by, i), posenc_dd_from(params->scale)).hi;
}
