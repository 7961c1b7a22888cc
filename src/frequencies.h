/* SPDX-License-Identifier: MIT */
/* Parameters -> effective inverse frequencies and attention factor: the only place for them. */
#ifndef POSENC_FREQUENCIES_H
#define POSENC_FREQUENCIES_H

#include <posenc/posenc.h>

/*
 * Parameters are already checked (plan_check.c). A length > 0 that they fix goes before
 * `length`, where 0 means 1; scalings without a length ignore both. `set` is one of LINEAR's
 * factors, else 0. Pairs [first, first + count) are written to inv_freq[0..count-1].
 */

/* The doubles nearest to the formula of the scaling (rope.h, posenc_plan_create), the same bits on
 * every machine (+ - x /). GGML: those of the formula, its rows have a recurrence of their own. */
void posenc_frequencies(const posenc_rope_params *params, int64_t length, int32_t set,
                        int32_t first, int32_t count, double *inv_freq);

/* HF_F32 and VLLM: in float32, operation by operation as docs/schemes.md has them, the power (and
 * logarithms of doubles) correctly rounded. VLLM's LINEAR leaves the factor to the positions. */
void posenc_frequencies_f32(const posenc_rope_params *params, int64_t length, int32_t set,
                            int32_t first, int32_t count, float *inv_freq);

/* The attention factor in force: the one given, or by the rule of the scaling, nearest double. */
double posenc_attention_factor(const posenc_rope_params *params, int64_t length);

/* The factor s of LINEAR's set `set`. */
static inline double posenc_linear_factor(const posenc_rope_params *params, int32_t set)
{
    return params->factors ? params->factors[set] : params->factor;
}

#endif
