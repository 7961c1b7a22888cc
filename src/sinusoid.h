/* SPDX-License-Identifier: MIT */
/* The inside of a sinusoid: some channels for each axis, made once, never changed. */
#ifndef POSENC_SINUSOID_H
#define POSENC_SINUSOID_H

#include "plan.h"
#include "sinusoid_block.h"

enum { POSENC_SINUSOID_AXES = 4 };

/*
 * The channels of one axis. `plan` is one whose pairs turn by scale x frequency, with what rows of
 * real positions and of F64 need and nothing about a rotation.
 */
struct posenc_sinusoid_axis {
    posenc_plan plan;
    struct posenc_frequency_set set;
    struct posenc_sinusoid_block *blocks; /* [ceil(sines / 16)] */
    int64_t channel;       /* the first one */
    size_t sines, cosines; /* sines = plan.pairs, cosines that or one less */
    size_t zeros;          /* channels of 0 behind them, 0 or 1 */
};

struct posenc_sinusoid {
    posenc_sinusoid_params params; /* as checked */
    const struct posenc_kernels *kernels;
    posenc_plan positions; /* what positions are checked against: range and number of axes */
    size_t axes;
    struct posenc_sinusoid_axis axis[POSENC_SINUSOID_AXES];
};

/* Frequencies of an axis of `dim` channels: floor(dim / 2), ceil for ODD_SINE. */
static inline int32_t posenc_sinusoid_pairs(const posenc_sinusoid_params *params, int32_t dim)
{
    return params->odd == POSENC_ODD_SINE ? dim / 2 + dim % 2 : dim / 2;
}

/* The number that `shift` is taken from. */
static inline double posenc_sinusoid_numerator(const posenc_sinusoid_params *params, int32_t dim)
{
    return params->exponent_by_width ? 0.5 * (double)dim
                                     : (double)posenc_sinusoid_pairs(params, dim);
}

/* Checks every field of params of this version's size, but for isa. */
int32_t posenc_sinusoid_params_check(const posenc_sinusoid_params *params, posenc_error *error);

/* The doubles nearest to scale x base^(-i / (numerator - shift)) for an axis of `dim` channels. */
void posenc_sinusoid_frequencies(const posenc_sinusoid_params *params, int32_t dim,
                                 double *frequencies);

#endif
