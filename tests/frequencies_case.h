/* SPDX-License-Identifier: MIT */
/* What the tests of frequencies share: parameters of a set, and the distance of doubles. */
#ifndef FREQUENCIES_CASE_H
#define FREQUENCIES_CASE_H

#include "frequencies.h"

#include <math.h>

enum { MOST_PAIRS = 1024 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline posenc_rope_params parameters(int32_t scaling, double base, int32_t rotary_dim)
{
    return (posenc_rope_params){.struct_size = sizeof(posenc_rope_params),
                                .layout = POSENC_ADJACENT,
                                .head_dim = rotary_dim,
                                .rotary_dim = rotary_dim,
                                .scaling = scaling,
                                .base = base,
                                .factor = 8.0,
                                .original_max_position = 8192.0,
                                .low_freq_factor = 1.0,
                                .high_freq_factor = 4.0,
                                .beta_fast = 32.0,
                                .beta_slow = 1.0,
                                .truncate = 1,
                                .magnitude_slope = 0.1};
}

/* Every pair of set 0, without a length. */
static inline void all_frequencies(const posenc_rope_params *p, double *inv_freq)
{
    posenc_frequencies(p, 0, 0, 0, p->rotary_dim / 2, inv_freq);
}

static inline void all_frequencies_f32(const posenc_rope_params *p, float *inv_freq)
{
    posenc_frequencies_f32(p, 0, 0, 0, p->rotary_dim / 2, inv_freq);
}

static inline double spacing(double x)
{
    return nextafter(x, INFINITY) - x;
}

#endif
