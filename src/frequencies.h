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

/* What the softmax scale of families with DeepSeek's attention is multiplied by. */
double posenc_softmax_multiplier(const posenc_rope_params *params);

/* The running length in force. */
static inline int64_t posenc_effective_length(const posenc_rope_params *params, int64_t length)
{
    return params->length > 0 ? params->length : length > 0 ? length : 1;
}

/* The greatest length <= L0. */
static inline int64_t posenc_trained_length(const posenc_rope_params *params)
{
    double trained = params->original_max_position;
    return trained < 0x1p63 ? (int64_t)trained : INT64_MAX;
}

/* The divisor of pair i that the caller gave, else 1. */
static inline double posenc_divisor(const posenc_rope_params *params, int32_t pair)
{
    int given = params->frequency_source == POSENC_FREQUENCIES_DIVISORS;
    return given ? params->frequencies[pair] : 1.0;
}

/* The factor s of LINEAR's set `set`. */
static inline double posenc_linear_factor(const posenc_rope_params *params, int32_t set)
{
    return params->factors ? params->factors[set] : params->factor;
}

/* What a float32 position is divided by: vLLM's LINEAR does that in place of the frequencies. */
static inline float posenc_position_divisor(const posenc_rope_params *params, int32_t set)
{
    int positions =
        params->recipe == POSENC_RECIPE_VLLM && params->scaling == POSENC_SCALING_LINEAR;
    return positions ? (float)posenc_linear_factor(params, set) : 1.0f;
}

#endif
