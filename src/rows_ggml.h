/* SPDX-License-Identifier: MIT */
/* Rows as ggml computes them on a CPU. */
#ifndef POSENC_ROWS_GGML_H
#define POSENC_ROWS_GGML_H

#include "common.h"

/* What all rows of a plan share, in ggml's own names. */
struct posenc_ggml {
    float theta_scale; /* powf(freq_base, -2 / n_dims): from one pair's angle to the next */
    float freq_scale;  /* 1 / s, of LINEAR, YARN and PROPORTIONAL */
    int yarn;          /* ext_factor of ggml: 1 or 0 */
    float low, high;   /* corr_dims of the ramp */
};

void posenc_ggml_prepare(const posenc_rope_params *params, struct posenc_ggml *ggml);

/* The divisor ("freq factor") of each pair for a set of frequencies whose exact ones are given. */
void posenc_ggml_divisors(const posenc_rope_params *params, int32_t set, const double *inv_freq,
                          float *divisors);

#endif
