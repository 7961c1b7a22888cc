/* SPDX-License-Identifier: MIT */
/* Parameters -> effective inverse frequencies and attention factor: the only place for them. */
#ifndef POSENC_FREQUENCIES_H
#define POSENC_FREQUENCIES_H

#include <posenc/posenc.h>

/*
 * params are already checked (plan.c). Writes rotary_dim/2 values: the doubles nearest to the
 * formula of the scaling (posenc.h, posenc_plan_create), the same bits on every machine (+ - x /).
 */
void posenc_frequencies(const posenc_rope_params *params, double *inv_freq);

/* The same as transformers computes it in float32, operation by operation, the power (and for YARN
 * the bounds, which it computes in double) correctly rounded. */
void posenc_frequencies_hf_f32(const posenc_rope_params *params, float *inv_freq);

/* The attention factor in force: the one given, or by the rule of the scaling, nearest double. */
double posenc_attention_factor(const posenc_rope_params *params);

#endif
