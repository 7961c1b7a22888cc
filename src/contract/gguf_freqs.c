/* SPDX-License-Identifier: MIT */
/* Tensors that change frequencies: LongRoPE's two lists, and divisors, maybe by a known rule. */
#include "gguf.h"
#include "gguf_arch.h"

#include <math.h>

static const char DIVISORS[] = "rope_freqs.weight";

/* The writer's float of sqrt(1 + ln s / ln L0) means that rule: the plan has its nearest double. */
static int longrope_attention(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    static const char key[] = "rope.scaling.attn_factor";
    posenc_rope_params *params = &set->params;
    double given = 1.0, s = params->factor, length = params->original_max_position;
    int found = posenc_gguf_real(from, key, &given);
    if (found < 0 || !posenc_is_factor(given)) {
        return found < 0 ? -1 : posenc_gguf_refuse(from, key, posenc_factor_rule);
    }
    double rule = s > 1.0 && length > 1.0 ? sqrt(1.0 + log(s) / log(length)) : 1.0;
    params->attention_factor = fabs(given - rule) <= 0x1p-22 * rule ? 0.0 : given;
    if (!found) {
        posenc_gguf_assume(from, key, 1.0, "the default of the format");
    }
    return 0;
}

int posenc_gguf_longrope(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    static const char *const names[2] = {"rope_factors_short.weight", "rope_factors_long.weight"};
    posenc_rope_params *params = &set->params;
    const posenc_contract_facts *facts = &from->reader->contract->facts;
    const double *lists[2] = {NULL, NULL};
    int64_t pairs = params->rotary_dim / 2;
    int has_long = posenc_gguf_factors(from, names[1], pairs, &lists[1]);
    int has_short = has_long < 0 ? -1 : posenc_gguf_factors(from, names[0], pairs, &lists[0]);
    if (has_short < 0 || (!has_long && !has_short)) {
        return has_short < 0 ? -1 : 0;
    }
    if (!has_long || !has_short) {
        from->reader->status = posenc_fail(from->reader->error, POSENC_ERROR_MODEL,
                                           "tensor %s is missing: LongRoPE has two lists",
                                           names[has_long ? 0 : 1]);
        return -1;
    }
    if (posenc_gguf_original(from, set) < 0) {
        return -1;
    }
    params->scaling = POSENC_SCALING_LONGROPE;
    params->short_factors = lists[0];
    params->long_factors = lists[1];
    set->rope_type = "longrope";
    params->factor = facts->max_position > 0
                         ? (double)facts->max_position / params->original_max_position
                         : 1.0;
    posenc_gguf_assume(from, "rope.scaling.factor", params->factor,
                       "context_length divided by original_context_length");
    return longrope_attention(from, set) < 0 ? -1 : 1;
}

/* Leading ones, then divisors so large that nothing turns: Gemma 4's way to say proportional. */
static int is_proportional(const double *values, int64_t pairs, int32_t *turning)
{
    int64_t i = 0;
    while (i < pairs && values[i] == 1.0) {
        i++;
    }
    *turning = (int32_t)i;
    while (i < pairs && values[i] >= 1e20) {
        i++;
    }
    return i == pairs && *turning < pairs;
}

static double llama3_divisor(double low, double high, double original, double factor, double w)
{
    double turns = original * w / 6.283185307179586; /* within the original length */
    double t = high > low ? (turns - low) / (high - low) : turns >= low ? 1.0 : 0.0;
    t = t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t;
    return 1.0 / ((1.0 - t) / factor + t);
}

/* Writers compute the divisors in float32, by differences that lose some of its bits. */
static int is_llama3(const double *values, int64_t pairs, const struct posenc_set *set, double low,
                     double high, double original)
{
    for (int64_t i = 0; i < pairs; i++) {
        double w = pow(set->params.base, -2.0 * (double)i / set->params.rotary_dim);
        double wanted = llama3_divisor(low, high, original, values[pairs - 1], w);
        if (!(fabs(values[i] - wanted) <= 0x1p-15 * wanted)) {
            return 0;
        }
    }
    return values[pairs - 1] > 1.0;
}

static void use_llama3(struct posenc_gguf_reader *from, struct posenc_set *set, double factor,
                       double low, double high, int64_t original)
{
    posenc_contract_facts *facts = &from->reader->contract->facts;
    posenc_rope_params *params = &set->params;
    params->scaling = POSENC_SCALING_LLAMA3;
    params->factor = factor;
    params->low_freq_factor = low;
    params->high_freq_factor = low < high ? high : nextafter(low, INFINITY);
    params->original_max_position = (double)original;
    set->original_max_position = original;
    set->rope_type = "llama3";
    if (facts->trained_position < 0) {
        facts->trained_position = original;
    }
    posenc_error why;
    posenc_fail(&why, POSENC_OK,
                "the rule with factor %g, %g, %g and length %d gives these floats: it counts",
                factor, low, high, original);
    posenc_assume_text(from->reader, DIVISORS, "\"llama3\"", why.text);
}

/* The two pairs of turns that models have; Llama 4 Scout changes abruptly. */
static int recognise(struct posenc_gguf_reader *from, struct posenc_set *set,
                     const double *values, int64_t pairs)
{
    static const double turns[][2] = {{1.0, 4.0}, {1.0, 1.0}};
    int64_t original = from->reader->contract->facts.trained_position;
    original = original > 0 ? original : 8192;
    int32_t turning;
    if (is_proportional(values, pairs, &turning)) {
        set->params.scaling = POSENC_SCALING_PROPORTIONAL;
        set->params.rotating_pairs = turning;
        set->rope_type = "proportional";
        posenc_assume_text(from->reader, DIVISORS, "\"proportional\"",
                           "ones, then values so large that nothing turns");
        return 1;
    }
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
        if (is_llama3(values, pairs, set, turns[i][0], turns[i][1], (double)original)) {
            use_llama3(from, set, values[pairs - 1], turns[i][0], turns[i][1], original);
            return 1;
        }
    }
    return 0;
}

int posenc_gguf_divisors(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    int64_t pairs = set->params.rotary_dim / 2;
    const double *values = NULL;
    int found = set->layers == POSENC_LAYER_SLIDING
                    ? 0
                    : posenc_gguf_factors(from, DIVISORS, pairs, &values);
    int scaled = set->params.scaling != POSENC_SCALING_NONE;
    if (found <= 0 || (!scaled && recognise(from, set, values, pairs))) {
        return found;
    }
    if (scaled && set->params.scaling != POSENC_SCALING_LINEAR) {
        return posenc_gguf_refuse(from, "rope.scaling.type",
                                  "does not go with the divisors of rope_freqs.weight");
    }
    set->params.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    set->params.frequencies = values;
    posenc_fail(posenc_warning(from->reader, NULL, DIVISORS), POSENC_OK,
                "divides the frequencies by no rule that is known");
    return 1;
}
